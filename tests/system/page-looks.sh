#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How the page looks in a browser: colours, contrast, each view in windows from a phone's to 4K.
. "$TOP/tests/system/lib.sh"

start printed "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --print
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' printed.err || fail "does not listen: $(cat printed.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' printed.err)

status=0
python3 "$TOP/tests/browser/page.py" "$url" . looks || status=$?
[ $status != 77 ] || skip "no chromium and chromedriver here"
exit $status
