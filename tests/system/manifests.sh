#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each configuration in the manifests is one that hearth reads; the manifests and the chart are rendered, where
# kubectl and helm are, and looked at by a real API server in the folder $HEARTH_APISERVER, where there is one (tests/deploy/manifests.sh).
. "$TOP/tests/system/lib.sh"
unset HEARTH_CONFIG KUBERNETES_SERVICE_HOST
export KUBERNETES_NODE_NAME=node
read=0
for file in "$TOP"/deploy/kubernetes/base/config.yaml "$TOP"/deploy/kubernetes/overlays/*/*config.yaml; do
	"$HEARTH" check --config "$file" >out 2>err || fail "hearth does not read $file: $(cat out err)"
	! grep -q 'is not set\|did you mean' out err || fail "$file: $(cat out err)"
	read=$((read + 1))
done
[ $read -ge 8 ] || fail "$read configurations"
sed 's/exporters: \[/exporters: [no-such-one, /' "$TOP/deploy/kubernetes/base/config.yaml" >wrong.yaml # does it look at all?
! "$HEARTH" check --config wrong.yaml >out 2>&1 || fail "a pipeline without an exporter is taken"

status=0
"$TOP/tests/deploy/manifests.sh" "$(dirname "$HEARTH")" ${HEARTH_APISERVER:+"$HEARTH_APISERVER"} || status=$?
[ $status = 77 ] || [ $status = 0 ] || fail "the manifests"
echo "$read configurations read"
