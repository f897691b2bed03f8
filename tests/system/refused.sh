#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A command refuses with one sentence and a status of its own: 2 for wrong usage, 1 for what is not as it should be on
# this machine. Options that mean nothing with a format, sinks, folders, sides of a comparison, settings. Needs no BPF.
. "$TOP/tests/system/lib.sh"

# refuses STATUS SENTENCE ARG...: the last line on stderr begins with this, and nothing is on stdout
refuses() {
	local want=$1 text=$2 status=0
	shift 2
	timeout 20 "$HEARTH" "$@" >out 2>err </dev/null || status=$?
	[ $status = "$want" ] || fail "hearth $*: status $status, not $want: $(cat err)"
	[[ "$(tail -n 1 err)" == "hearth: error: $text"* ]] && [ ! -s out ] || fail "hearth $*: does not say '$text': $(cat err out)"
}
takes() {
	"$HEARTH" "$@" >out 2>err </dev/null || fail "hearth $*: status $?: $(cat err)"
}
printf 'main;a 5\nmain;b 3\n' >x.folded
printf 'word\n' >token
printf 'two words\n' >two-words
for name in no-such-file no-such-folder; do [ ! -e $name ]; done

# --- report: an option that means nothing with a format, and each that means something ---
# means FORMAT OPTIONS: those of the line below that it takes; all others it refuses
means() {
	local option value
	while read -r option value; do
		if [[ " $2 " == *" $option "* ]]; then
			takes report x.folded --format "$1" "$option" ${value:+"$value"}
		else
			refuses 2 "$option has no meaning with --format $1" report x.folded --format "$1" "$option" ${value:+"$value"}
		fi
	done <<-'LIST'
		--process 1
		--comm x
		--thread 1
		--focus a
		--ignore x
		--hide x
		--by comm
		--invert
		--depth 3
		--function a
	LIST
}
selecting="--process --comm --thread --focus --ignore --hide"
means top "$selecting --by"
means tree "$selecting --by --invert --depth"
means folded "$selecting --by --invert"
means lines "$selecting --by --function"
means processes "$selecting"
means threads "$selecting"
means timeline "$selecting --by"
means csv "$selecting --by"
means json "$selecting --by --invert"
means truth ""
means modules ""
means print ""
for option in --process --comm --thread --focus --ignore --hide; do
	refuses 2 "$option: '(' is no regular expression: missing closing parenthesis" report x.folded $option '('
done
refuses 2 "--function: '(' is no regular expression: missing closing parenthesis" report x.folded --format lines --function '('
refuses 2 "--by: 'nonsense' is nothing to group by" report x.folded --by nonsense
refuses 2 "--by: 'label=' is nothing to group by" report x.folded --by label=
refuses 1 "cannot read no-such-file: No such file" report x.folded no-such-file
: >none.folded
refuses 1 "none.folded is empty" report x.folded none.folded

# --- sinks ---
serve() { # STATUS SENTENCE ARG...
	refuses "$1" "$2" serve --grpc-address off --http-address 127.0.0.1:0 "${@:3}"
}
collector=http://127.0.0.1:9
serve 2 "--sink: null takes no value" --sink null=x
serve 2 "--sink: file needs a value: file=PATH" --sink file
serve 2 "--sink: file needs a value: file=PATH" --sink file=
serve 2 "--sink: clickhouse needs a value: clickhouse=URL" --sink clickhouse
serve 2 "--sink: there is no sink 'xyzzyx'; there are print, null," --sink xyzzyx
serve 2 "--sink: there is no sink 'nul'; did you mean null?" --sink nul
serve 2 "--store: profiles are kept in one store only" --sink store=one --store two
serve 1 "cannot keep profiles in x.folded: Not a directory" --store x.folded
serve 1 "cannot write to no-such-folder/x: No such file" --sink file=no-such-folder/x
serve 1 "cannot write to no-such-folder/x.json: No such file" --sink file=no-such-folder/x.json
serve 1 "cannot write to x.folded: Not a directory" --sink dir=x.folded
serve 2 "--collector: 'ftp://x' is no collector's address" --collector ftp://x
serve 2 "--collector: 'ftp://u:xxxxxx@x' is no collector's address" --collector ftp://u:secret@x
serve 2 "--collector: 'ftp://x' is no collector's address" --sink otlp=ftp://x
serve 2 "--collector-header: not every header is 'NAME: VALUE'" --collector $collector --collector-header nonsense
for option in ca cert key token-file; do
	serve 1 "--collector-$option: cannot read no-such-file: No such file" --collector ${collector/http/https} --collector-$option no-such-file
done
serve 1 "--collector-token-file: two-words does not hold a token" --collector $collector --collector-token-file two-words
serve 1 "--spool: cannot keep files in x.folded: Not a directory" --collector $collector --spool x.folded
refuses 2 "--sink: prometheus is what 'hearth serve' counts for /metrics" run --sink prometheus
refuses 2 "--store: profiles are kept in one store only" run --sink store=one --store two

# --- convert, diff ---
refuses 2 "'x.xyz' does not say which format to write; end the name in one of .otlp, " convert x.folded x.xyz
refuses 2 "say which format to write to standard output: --format otlp" convert x.folded -
refuses 1 "cannot read no-such-file: No such file" convert no-such-file x.svg
refuses 1 "cannot write no-such-folder/x.svg: No such file" convert x.folded no-such-folder/x.svg
[ ! -e x.svg ] || fail "a picture of nothing"
refuses 2 "which captures are the first side, and which the second?" diff x.folded x.folded x.folded
refuses 2 "which captures are the first side, and which the second?" diff -- x.folded x.folded
takes diff x.folded -- x.folded x.folded
grep -q '^A *1 run' out && grep -q '^B *2 runs' out || fail "diff A -- B B: $(head -n 3 out)"
takes diff x.folded x.folded -- x.folded
grep -q '^A *2 runs' out && grep -q '^B *1 run' out || fail "diff A A -- B: $(head -n 3 out)"
for part in 101 -1 2x % nan '2 % '; do
	refuses 2 "--fail-above: '$part' is no part of the whole" diff x.folded x.folded --fail-above "$part"
done
for part in 100 0 0.5 '2 %' 2%; do
	takes diff x.folded x.folded --fail-above "$part"
done
refuses 2 "-o: 'x.txt' is no name of a picture" diff x.folded x.folded -o x.txt
refuses 2 "-o: 'x.otlp' is no name of a picture" diff x.folded x.folded -o x.otlp
refuses 1 "--measure time needs two captures a side at least" diff x.folded x.folded --measure time
refuses 1 "one of the captures holds no samples that are asked for" diff x.folded x.folded --focus nothing
refuses 1 "cannot read no-such-file: No such file" diff x.folded no-such-file
"$HEARTH" diff x.folded x.folded -o no-such-folder/x.svg >out 2>err && fail "a picture in no folder"
grep -q "cannot write no-such-folder/x.svg: No such file" err || fail "a picture in no folder: $(cat err)"

# --- store ---
refuses 2 "'hearth store' does not know 'nonsense'; it knows info, compact, prune, clear, export and verify" store nonsense
for verb in info verify export; do
	refuses 1 "cannot open the store no-such-folder/profiles.db: No such file" store $verb --store no-such-folder
	[ ! -e no-such-folder ] || fail "'store $verb' made a folder"
done
"$HEARTH" store compact --store empty 2>err || fail "a new store: $(cat err)"
refuses 1 "there is nothing to export" store export x.otlp --store empty
refuses 2 "'x.xyz' does not say which format to write" store export x.xyz --store empty
[ ! -e x.otlp ] && [ ! -e x.xyz ] || fail "an export of nothing"

# --- symbols ---
refuses 2 "'hearth symbols' does not know 'nonsense'; it knows build, show, prune, resolve and push" symbols nonsense
for verb in build show resolve push; do
	refuses 2 "'hearth symbols $verb' needs a file" symbols $verb
done
refuses 2 "'hearth symbols push' needs files and then the address of a hearth" symbols push x
refuses 2 "'nonsense' is no address of a hearth" symbols push "$HEARTH" nonsense
refuses 1 "cannot read x.folded: it is no 64-bit ELF file" symbols push x.folded $collector
refuses 1 "cannot read no-such-file: No such file" symbols push no-such-file $collector
refuses 1 "cannot read .: Is a directory" symbols push . $collector
refuses 1 "--collector-token-file: cannot use two-words: it does not hold a token" symbols push "$HEARTH" $collector --collector-token-file two-words
refuses 1 "--collector-token-file: cannot use no-such-file: No such file" symbols push "$HEARTH" $collector --collector-token-file no-such-file
refuses 1 "cannot send $HEARTH to $collector/api/v1/symbols: " symbols push "$HEARTH" $collector
refuses 1 "cannot read no-such-file: No such file" symbols show no-such-file
refuses 1 "no index of no-such-file: No such file" symbols build no-such-file

# --- what is to be sampled; found out before BPF is asked for ---
refuses 2 "':4318' names no host: write 127.0.0.1:4318" run --http-address :4318
refuses 2 "'[::1:80' " run --sink null --pprof-address '[::1:80'
refuses 2 "'1777' is no address to listen on" run --sink null --pprof-address 1777
refuses 2 "--cpu: 'x' is no list of CPUs" run --sink null --cpu x
refuses 2 "--cpu: '3-1' is no list of CPUs" run --sink null --cpu 3-1
refuses 2 "--uid: there is no user 'no-such-user'" run --sink null --uid no-such-user
refuses 2 "--uid: there is no user '4294967295'" run --sink null --uid 4294967295
refuses 2 "--resource-attributes: 'x' is not KEY=VALUE" run --sink null --resource-attributes x
refuses 2 "/no-such-folder is not there: --proc names the place" run --sink null --proc /no-such-folder
refuses 2 "--probabilistic: '101' is not a percentage" run --sink null --probabilistic 101

# --- the configuration file: wrong settings are told by `hearth check`, and by its line about the file ---
printf 'freq: 9\nfrq: 10\n' >unknown.yaml
printf 'report-interval: soon\n' >value.yaml
printf -- '- freq\n' >list.yaml
printf 'freq: 9\n' >right.yaml
for file in unknown:2 value:1; do
	status=0
	"$HEARTH" check --config ${file%:*}.yaml >out 2>err || status=$?
	[ $status = 1 ] && [[ "$(cat out)" == "${file%:*}.yaml:${file#*:}: "* ]] || fail "check --config $file: status $status: $(cat out err)"
	[ "$(tail -n 1 err)" = "hearth: error: 1 setting is wrong in ${file%:*}.yaml" ] || fail "check --config $file: $(cat err)"
done
refuses 1 "list.yaml:1: the file is lines of 'option: value'" check --config list.yaml
refuses 1 "cannot read no-such-file: No such file" check --config no-such-file
takes check --config right.yaml
for file in unknown value list no-such; do
	HEARTH_CONFIG=$file.yaml "$HEARTH" check >out 2>err || : # its status is the machine's
	grep -q "^partly *configuration file: $file.yaml" out || fail "check with $file.yaml: $(grep configuration out)"
	grep -q "=> hearth check --config FILE names what is wrong in it" out || fail "check with $file.yaml says nothing to do: $(cat out)"
done
HEARTH_CONFIG=right.yaml "$HEARTH" check >out 2>err || :
grep -q "^yes *configuration file: right.yaml" out || fail "check with right.yaml: $(grep configuration out)"
echo "all as it should be"
