#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The query API beside the agent, over the store on disk; and a capture on the page.
. "$TOP/tests/system/lib.sh"
need_bpf

store=$PWD/store
. "$TOP/tests/system/api_of_store.sh"

# A capture on the page.
"$HEARTH" record -q -d 1 -F 199 -o spin.otlp
start view.out "$HEARTH" view spin.otlp --http-address 127.0.0.1:0
until_true 20 grep -q 'page at http' view.out.err || fail "no view: $(cat view.out.err)"
url=$(sed -n 's/.*page at \(http:[^ ]*\)\/#.*/\1/p' view.out.err)
curl -sf "$url/api/v1/top?from=first&to=last" | grep -q spin_inner || fail "the capture is not shown"

# The same in one go: recorded, and opened in the browser.
mkdir bin
printf '#!/bin/sh\necho "$1" >opened\n' >bin/xdg-open
chmod +x bin/xdg-open
PATH=$PWD/bin:$PATH start open.out "$HEARTH" record -q -d 1 -o open.otlp --open
until_true 20 test -s opened || fail "nothing was opened: $(cat open.out.err)"
curl -sf "$(sed 's/#.*//' opened)api/v1/top?from=first&to=last" | grep -q spin_inner || fail "what was opened does not show the capture"
viewer=$(pgrep -P "$started") && kill -INT "$viewer" && wait "$started" || fail "record ended with $?"
