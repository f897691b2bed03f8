# SPDX-License-Identifier: Apache-2.0
# Sourced by kernel.sh and sysroot.sh: apt over a state folder of its own, for another Debian suite or CPU, so the machine's lists,
# packages and settings stay as they are. Packages come from the mirror that the machine itself uses ($HEARTH_VM_MIRROR overrides
# it: what ends in /debian). The caller has set $work, a folder that it removes.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

skip() {
	echo "$*" >&2
	exit 77
}

# apt_open SUITE ARCH: reads the suite's lists; $apt_options then is for every call of apt
apt_open() {
	local mirror apt=$work/apt-$1-$2
	for tool in apt-get dpkg-deb; do
		command -v $tool >/dev/null || skip "no $tool here"
	done
	mirror=${HEARTH_VM_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$' || :)}
	[ -n "$mirror" ] || skip "no Debian mirror among this machine's package sources; set HEARTH_VM_MIRROR"
	[ -e $keyring ] || skip "no $keyring here"
	mkdir -p "$apt"/{lists/partial,archives/partial,empty}
	: >"$apt/status"
	echo "deb [arch=$2 signed-by=$keyring] $mirror $1 main" >"$apt/sources.list"
	apt_options=(-o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
		-o Dir::Cache="$apt" -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/empty"
		-o Dir::Etc::preferencesparts="$apt/empty" -o APT::Architecture="$2" -o APT::Architectures="$2"
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
	apt-get "${apt_options[@]}" update -qq || skip "$1 ($2) cannot be reached"
}

# apt_unpack TREE PACKAGE...: unpacks them there, no more than that
apt_unpack() {
	local tree=$1 debs=$work/debs
	shift
	mkdir "$debs"
	(cd "$debs" && apt-get "${apt_options[@]}" download -qq "$@" >/dev/null) || skip "cannot be fetched: $*"
	unpack_debs "$tree" "$debs"
}

# apt_unpack_all TREE PACKAGE...: the same with all that they depend on
apt_unpack_all() {
	local tree=$1 debs=$work/debs
	shift
	mkdir -p "$debs/partial"
	apt-get "${apt_options[@]}" -o Dir::Cache::archives="$debs" -o Debug::NoLocking=1 install -qq -y --no-install-recommends \
		--download-only "$@" >/dev/null || skip "cannot be fetched: $*"
	unpack_debs "$tree" "$debs"
}

unpack_debs() {
	for deb in "$2"/*.deb; do
		dpkg-deb -x "$deb" "$1"
	done
	rm -r "$2"
}
