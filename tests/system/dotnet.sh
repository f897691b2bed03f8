#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The methods of a .NET program in stacks: each sample of a program that calls in every way there is, judged by what the program says of
# itself, in both forms of the walk and in each way that the runtime compiles; the program is gone when its profile is made. The runtime
# that is installed, or that HEARTH_DOTNET names (a folder with libcoreclr.so and the library's images); others by `make runtimes`.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "frames of .NET are known for x86-64 alone"
folder=${HEARTH_DOTNET:-$(find /usr/lib/dotnet /usr/share/dotnet -path '*Microsoft.NETCore.App*' -name libcoreclr.so -printf '%h\n' 2>/dev/null | sort -V | tail -n 1)}
[ -n "$folder" ] || skip "no .NET here (dotnet-runtime of Microsoft, or HEARTH_DOTNET=FOLDER)"
command -v mcs >/dev/null || skip "no C# compiler here (mono-mcs)"
cc -O1 -o host "$TOP/tests/script/dotnet_host.c" -ldl && mcs -unsafe -out:Calls.exe "$TOP/tests/script/Calls.cs" >mcs.out 2>&1 ||
	fail "$(cat mcs.out)"

for way in "" "--no-bpf-loop" "TieredCompilation=0" "ReadyToRun=0"; do
	form= option=
	[ "${way#--}" = "$way" ] && option=${way:+DOTNET_$way COMPlus_$way} || form=$way # .NET 5 and older know COMPlus_ alone
	# shellcheck disable=SC2086 # there may be none
	start_record x.otlp $form -F 399 --report-interval 500ms -p $$ # and its children
	# shellcheck disable=SC2086
	env $option ./host "$folder" "$PWD/Calls.exe" 4 >truth || skip "this .NET does not start: $folder"
	stop "$recorder"
	accounted record.out.err
	judge_scripts --min 99 --least 100 --without 100000 --loop NONE --complete 97 --own Calls. --whole-names x.otlp host dotnet truth
done

# Files and lines, by PDBs that are made for the library; the runtime's own stack traces are the truth.
mcs -out:Lines.exe "$TOP/tests/script/Lines.cs" >mcs.out 2>&1 || fail "$(cat mcs.out)"
mkdir with-lines
cp -l "$folder"/*.dll "$folder"/*.so with-lines 2>/dev/null || cp -f "$folder"/*.dll "$folder"/*.so with-lines || fail "no copy of $folder"
python3 "$TOP/tests/script/dotnet_pdb.py" with-lines with-lines/*.dll || fail "no PDBs"
late=
grep -aq '@(#)Version 4\.700\.' "$folder/libcoreclr.so" && late="--late 8" # 3.1
for way in "" "TieredCompilation=0" "ReadyToRun=0" embedded; do
	if [ "$way" = embedded ]; then # in the images, packed
		rm -f with-lines/*.pdb
		python3 "$TOP/tests/script/dotnet_pdb.py" --embed with-lines with-lines/*.dll || fail "no PDBs in images"
		way=
	fi
	option=${way:+DOTNET_$way COMPlus_$way}
	start_record lines.otlp -F 399 --report-interval 500ms -p $$
	# shellcheck disable=SC2086 # there may be none
	env $option ./host "$PWD/with-lines" "$PWD/Lines.exe" 5 >truth || fail "the program with lines does not run"
	stop "$recorder"
	accounted record.out.err
	# shellcheck disable=SC2086
	python3 "$TOP/tests/script/judge_lines.py" $late lines.otlp host truth || fail "$way: lines are wrong"
done
