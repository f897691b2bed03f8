#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many pods at a real API server, as an administrator whose token is admintoken:

  crowd.py URL make PODS NODE ON_NODE       PODS pods in the namespace crowd, ON_NODE of them on NODE, the others on 90 other nodes; those
                                            of NODE run (have a status with container ids)
  crowd.py URL change ON_NODE RATE SECONDS  changes the status of these ON_NODE pods, RATE times a second; prints how many a second it was
"""
import hashlib
import http.client
import json
import ssl
import sys
import threading
import time
import urllib.parse

THREADS = 8
url = urllib.parse.urlsplit(sys.argv[1])
local = threading.local()


def ask(method, path, body=None):
    if not hasattr(local, "connection"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        local.connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    for _ in range(10):  # an API server says "later" when it is asked much
        local.connection.request(method, path, json.dumps(body) if body else None, {"Authorization": "Bearer admintoken", "Content-Type": kind})
        answer = local.connection.getresponse()
        data = answer.read()
        if answer.status != 429:
            break
        time.sleep(1)
    if answer.status not in (200, 201, 409):
        sys.exit(f"{method} {path}: {answer.status} {data.decode()}")
    return len(data)


def name_of(number):
    return f"web-7d4b9c6f5d-{number:05x}"


def container(number, name):
    """As large as they are in clusters: variables, limits and probes."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 1}
    return {"name": name, "image": f"registry.example/shop/{name}:1.{number % 7}", "args": ["--listen", ":8080", "--level", "info"],
            "env": [{"name": f"SETTING_{i}", "value": f"value {i} of {name}"} for i in range(12)],
            "ports": [{"containerPort": 8080, "name": "http"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
            "livenessProbe": probe, "readinessProbe": probe,
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}, {"name": "scratch", "mountPath": "/scratch"}]}


NAMES = ("app", "proxy", "logs")


def pod(number, node):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name_of(number), "labels": {"app.kubernetes.io/name": "web", "pod-template-hash": "7d4b9c6f5d"},
                         "annotations": {"checksum/config": hashlib.sha256(b"%d" % number).hexdigest()}},
            "spec": {"nodeName": node, "automountServiceAccountToken": False, "containers": [container(number, name) for name in NAMES],
                     "volumes": [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}]}}


def status(number, turn):
    def one(name):
        digest = hashlib.sha256(f"{number} {name}".encode()).hexdigest()
        return {"name": name, "image": f"registry.example/shop/{name}:1.{number % 7}", "imageID": f"registry.example/shop/{name}@sha256:{digest}",
                "ready": turn % 2 == 0, "restartCount": turn, "containerID": f"containerd://{digest}",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}
    ip = f"10.9.{number // 250}.{number % 250 + 1}"
    return {"status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z", "podIP": ip, "podIPs": [{"ip": ip}],
                       "containerStatuses": [one(name) for name in NAMES]}}


def change(number, turn):
    return ask("PATCH", f"/api/v1/namespaces/crowd/pods/{name_of(number)}/status", status(number, turn))


def side_by_side(work):
    """work(THREAD) in each of THREADS threads; the first failure ends the program."""
    failures = []

    def run(thread):
        try:
            work(thread)
        except SystemExit as e:
            failures.append(e.code)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        sys.exit(failures[0])


def make(pods, node, on_node):
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": "crowd"}})
    sizes = []

    def work(thread):
        for number in range(thread, pods, THREADS):
            ask("POST", "/api/v1/namespaces/crowd/pods", pod(number, node if number < on_node else f"node-of-others-{number % 90}"))
            if number < on_node:
                sizes.append(change(number, 0))
    begin = time.monotonic()
    side_by_side(work)
    print(f"{pods} pods made in {time.monotonic() - begin:.0f} s, {on_node} of them on {node}, {sum(sizes) / max(1, len(sizes)):.0f} bytes each as JSON")


def changes(on_node, rate, seconds):
    begin = time.monotonic()
    count = [0] * THREADS

    def work(thread):
        turn = 0
        while True:
            number = turn * THREADS + thread  # of all changes
            wait = begin + number / rate - time.monotonic()
            if number / rate >= seconds or time.monotonic() > begin + seconds:
                return
            time.sleep(max(0, wait))
            change(number % on_node, number // on_node + 1)
            count[thread] += 1
            turn += 1
    side_by_side(work)
    print(f"{sum(count) / (time.monotonic() - begin):.1f}")


if sys.argv[2] == "make":
    make(int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
else:
    changes(int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
