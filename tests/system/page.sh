#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page: how it is served, and what can be done with its views in a browser.
. "$TOP/tests/system/lib.sh"

start printed "$HEARTH" serve --http-address 127.0.0.1:0 --grpc-address 127.0.0.1:0 --print
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' printed.err || fail "does not listen: $(cat printed.err)"
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' printed.err)

# Every file of the folder is served, as it is, packed where that is asked for; and all together is small.
bytes=0
for file in "$TOP"/backend/page/*; do
	name=$(basename "$file") path=/page/$(basename "$file")
	[ "$name" != index.html ] || path=/
	curl -sf -D head -o plain "$url$path" || fail "no $path"
	cmp -s plain "$file" || fail "$path is not the file"
	grep -qi "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:" head || fail "$path: policy"
	grep -qi '^x-content-type-options: nosniff' head && grep -qi '^referrer-policy: no-referrer' head || fail "$path: $(cat head)"
	curl -sf -D head -o packed -H 'Accept-Encoding: br, gzip;q=0.5' "$url$path"
	grep -qi '^content-encoding: gzip' head && gzip -dc packed | cmp -s - "$file" || fail "$path is not packed"
	bytes=$((bytes + $(stat -c %s packed)))
	etag=$(sed -n 's/^etag: \(.*\)\r$/\1/Ip' head)
	[ "$(curl -s -o /dev/null -w '%{http_code} %{size_download}' -H 'Accept-Encoding: gzip' -H "If-None-Match: \"x\", W/$etag" "$url$path")" = "304 0" ] ||
		fail "$path with its ETag $etag is sent again"
	[ "$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match: $etag" "$url$path")" = 200 ] || fail "$path: the packed ETag is also the plain one"
done
[ "$bytes" -le 150000 ] || fail "the page has $bytes bytes packed"
curl -s -H 'Accept-Encoding: gzip;q=0' "$url/" | cmp -s - "$TOP/backend/page/index.html" || fail "packed for who refuses it"
for path in /page/ /page/nothing.js /page/../Makefile /page/index.html/ /index.html; do
	[ "$(curl -s --path-as-is -o /dev/null -w '%{http_code}' "$url$path")" = 404 ] || fail "$path is something"
done
[ "$(curl -s -o /dev/null -w '%{http_code}' -d x "$url/")" = 405 ] || fail "/ takes what is sent"

status=0
mkdir pictures
python3 "$TOP/tests/browser/page.py" "$url" pictures others || status=$?
[ $status != 77 ] || skip "no chromium and chromedriver here"
exit $status
