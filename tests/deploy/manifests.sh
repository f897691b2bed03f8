#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manifests and the chart: rendered, each configuration in them read by hearth, and, where there is a real API server, taken by it in a dry
# run, which knows every field.
#   usage: tests/deploy/manifests.sh BUILD [APISERVER]      APISERVER: a folder with kube-apiserver (docs/kubernetes.md)
set -eu
build=$(realpath "${1:?usage: manifests.sh BUILD [APISERVER]}")
server=${2:-}
cd "$(dirname "$0")/../.."
. tests/deploy/api.sh
work=$(mktemp -d)
trap 'api_stop; rm -rf "$work"' EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}
left_out() {
	echo "left out: $*"
}
mkdir "$work/out"
rendered=0
if kubectl kustomize --help 2>/dev/null | grep -q load-restrictor; then # older ones have a kustomize that knows no folders
	for folder in deploy/kubernetes/base deploy/kubernetes/overlays/*/; do
		name=$(basename "$folder")
		kubectl kustomize "$folder" >"$work/out/$name.yaml" 2>"$work/err" || fail "$folder: $(cat "$work/err")"
		rendered=$((rendered + 1))
	done
else
	left_out "kustomize: no kubectl of 1.21 or newer"
fi
if command -v helm >/dev/null; then
	helm lint --quiet deploy/helm || fail "helm lint"
	chart() {
		helm template hearth deploy/helm --namespace hearth --kube-version 1.34.0 "${@:2}" >"$work/out/helm-$1.yaml" 2>"$work/err" || fail "helm template $1: $(cat "$work/err")"
		rendered=$((rendered + 1))
	}
	chart defaults
	chart privileged --set agent.privileged=true --set rbac.owners=false,rbac.namespaces=false,rbac.nodes=true --set serviceAccount.name=other
	chart gateway --set gateway.enabled=true --set agent.storeFolder=/var/lib/hearth --set 'agent.ports[0].name=workloads,agent.ports[0].containerPort=7799' \
		--set 'agent.env[0].name=A,agent.env[0].value=b' --set 'imagePullSecrets[0].name=x'
	chart clickhouse --set gateway.enabled=true --set gateway.config.store=http://hearth@clickhouse:8123/hearth --set gateway.passwordSecret=clickhouse \
		--set gateway.replicas=2 --set 'gateway.config.store-password-file=/etc/hearth/password'
else
	left_out "the chart: no helm (go install helm.sh/helm/v3/cmd/helm@latest)"
fi

# The virtual machine: limactl knows every field; it does not run as root.
lima=$(command -v limactl || :)
if [ -n "$lima" ]; then
	cp deploy/lima/hearth.yaml "$work/hearth.yaml"
	as=()
	if [ "$(id -u)" = 0 ]; then
		mkdir "$work/lima" && chmod 755 "$work" && chown 65534 "$work/lima"
		as=(setpriv --reuid 65534 --regid 65534 --clear-groups env "HOME=$work/lima")
	fi
	"${as[@]}" "$lima" validate "$work/hearth.yaml" >"$work/log" 2>&1 || fail "limactl validate: $(cat "$work/log")"
else
	left_out "the schema of deploy/lima/hearth.yaml: no limactl"
fi
python3 - deploy/lima/hearth.yaml <<'END' || fail "deploy/lima/hearth.yaml"
import re, subprocess, sys, yaml
vm = yaml.safe_load(open(sys.argv[1]))
assert {i["arch"] for i in vm["images"]} == {"x86_64", "aarch64"}
for step in vm["provision"] + vm["probes"]:
    subprocess.run(["bash", "-n", "-c", step["script"]], check=True)
used = set(re.findall(r"{{\.Param\.(\w+)}}", open(sys.argv[1]).read()))
assert used == set(vm["param"]), (used, vm["param"])
page = vm["portForwards"][0]
assert page["guestPort"] == 4318 and "127.0.0.1:%d" % page["hostPort"] in vm["message"]
END
[ $rendered -gt 0 ] || exit 77

# Each configuration is one that hearth reads; each DaemonSet mounts what its file names, and probes the port that it says.
python3 - "$build/hearth" "$work"/out/*.yaml <<'END' || fail "the manifests"
import os, subprocess, sys, tempfile, yaml
hearth, files = sys.argv[1], sys.argv[2:]
for name in files:
    docs = [d for d in yaml.safe_load_all(open(name)) if d]
    configs = {d["metadata"]["name"]: d["data"]["config.yaml"] for d in docs if d["kind"] == "ConfigMap"}
    for config in configs.values():
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(config)
            f.flush()
            done = subprocess.run([hearth, "check", "--config", f.name], capture_output=True, text=True, env={**os.environ, "KUBERNETES_NODE_NAME": "n"})
            assert done.returncode == 0, (name, done.stdout, done.stderr, config)
    for d in docs:
        if d["kind"] not in ("DaemonSet", "Deployment", "StatefulSet"):
            continue
        spec = d["spec"]["template"]["spec"]
        assert d["spec"]["selector"]["matchLabels"].items() <= d["spec"]["template"]["metadata"]["labels"].items(), name
        volumes = {v["name"]: v for v in spec.get("volumes", [])} | {v["metadata"]["name"]: v for v in d["spec"].get("volumeClaimTemplates", [])}
        for c in spec["containers"]:
            assert {m["name"] for m in c.get("volumeMounts", [])} <= set(volumes), name
            ports = {p["name"] for p in c.get("ports", [])}
            for probe in ("livenessProbe", "readinessProbe"):
                assert c.get(probe, {"httpGet": {"port": None}})["httpGet"]["port"] in ports | {None}, name
            if "hearth" in c["image"]:
                words = [hearth, *c["args"], "--help"]
                words = [w for w in words if not w.startswith("--config=")]
                done = subprocess.run(words, capture_output=True, text=True)
                assert done.returncode == 0, (name, words, done.stderr)
        for v in spec.get("volumes", []):
            if "configMap" in v:
                assert v["configMap"]["name"] in configs, (name, v, list(configs))
print("manifests: %d rendered, all configurations are read" % len(files))
END

if [ -z "$server" ]; then
	left_out "the schema: no API server (APISERVER=FOLDER)"
	exit 0
fi
api_start "$(realpath "$server")" "$work/api" 16443 || { [ $? = 77 ] && left_out "the schema: no kube-apiserver in $server, no etcd, or no openssl" && exit 0; fail "no API server"; }
export KUBECONFIG=$kubeconfig
kubectl create namespace hearth >/dev/null
for file in "$work"/out/*.yaml; do
	kubectl apply --dry-run=server --validate=strict -f "$file" -n hearth >"$work/log" 2>&1 || fail "the API server refuses $(basename "$file"): $(cat "$work/log")"
done
sed 's/readOnlyRootFilesystem/readOnlyRoot/' "$work/out/base.yaml" >"$work/wrong.yaml" # does it look at all?
! kubectl apply --dry-run=server --validate=strict -f "$work/wrong.yaml" >"$work/log" 2>&1 || fail "the API server takes a field that there is not"
echo "manifests: taken by $(curl -sk -H 'Authorization: Bearer admintoken' "$api_url/version" | sed -n 's/.*gitVersion": "\([^"]*\)".*/kube-apiserver \1/p')"
