#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A known program is recorded, sent and stored; the page shows its functions, with the share that the folded stacks have. All of
# it with a token, which the browser is asked for.
. "$TOP/tests/system/lib.sh"
need_bpf

"$HEARTH" record -F 499 -o chain.otlp -- "$TRUTH/cpp_chain" 1 2>err || fail "exit status $?: $(cat err)"
(umask 077 && echo open-sesame >token)
start served "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --store :memory: --token-file token
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' served.err || fail "does not listen: $(cat served.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' served.err)
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/")" = 401 ] || fail "the page needs no token"
curl -sf -o answer -H 'Authorization: Bearer open-sesame' -H 'Content-Type: application/x-protobuf' --data-binary @chain.otlp "$url/v1development/profiles" || fail "not taken: $(cat answer)"
percent=$("$HEARTH" report chain.otlp --format folded | awk '{ n = $NF; all += n; if ($0 ~ /(^|;)truth::outer( \(inlined\))?(;| )/) of += n } END { print 100 * of / all }')

status=0
python3 "$TOP/tests/browser/page_real.py" "$url" open-sesame truth::outer "$percent" . || status=$?
[ $status != 77 ] || skip "no chromium and chromedriver here"
exit $status
