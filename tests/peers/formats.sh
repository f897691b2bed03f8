#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that hearth writes, read by the tools they are for: speedscope's page and Firefox Profiler's command line, which npm
# installs into BUILD/peers. Not part of the tests that run by themselves, as these come from a registry. Needs root.
#   usage: tests/peers/formats.sh BUILD
set -eu
build=$(realpath "${1:?usage: tests/peers/formats.sh BUILD}")
top=$(realpath "$(dirname "$0")/../..")
hearth=$build/hearth
mkdir -p "$build/peers"
cd "$build/peers"
npm install --silent --no-audit --no-fund --prefix . speedscope @firefox-devtools/profiler-cli
"$top/tests/truth/build.sh" "$build/truth"
"$hearth" record -F 499 -o chain.otlp -- "$build/truth/cpp_chain" 2
for format in speedscope.json perf.txt folded pb.gz firefox.json.gz; do
	"$hearth" convert chain.otlp chain.$format
done
"$top/tests/peers/speedscope.py" node_modules/speedscope/dist/release truth::outer . chain.speedscope.json chain.perf.txt chain.folded chain.pb.gz
"$top/tests/peers/firefox.py" node_modules/.bin/profiler-cli chain.firefox.json.gz chain.folded
