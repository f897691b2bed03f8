# SPDX-License-Identifier: Apache-2.0
"""Servers to compare with, and one of hearth: started, waited for, ended. The OpenTelemetry Collector is built here, by its own
builder, through Go's proxy; once."""
import contextlib
import os
import socket
import subprocess
import tempfile
import time

from measure import fail

VERSION = "v0.159.0"
PROVIDERS_VERSION = "v1.65.0"


def wait_for(port, process):
    for _ in range(400):
        if process.poll() is not None:
            fail(f"the server on port {port} ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    fail(f"nothing listens on port {port}")


@contextlib.contextmanager
def server(command, port):
    """Yields the pid of @command, once it listens on @port."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def collector(host, http_port, grpc_port, exporter="nop: {}"):
    """A Collector that passes profiles to @exporter, a line of its settings; yields its pid."""
    binary = build(os.path.join(host.bench, "collector"))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="ascii") as config:
        config.write("receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}, grpc: {endpoint: '127.0.0.1:%d'}}}}\n"
                     "exporters: {%s}\n"
                     "service:\n  telemetry: {metrics: {level: none}, logs: {level: error}}\n"
                     "  pipelines: {profiles: {receivers: [otlp], exporters: [%s]}}\n"
                     % (http_port, grpc_port, exporter, exporter.partition(":")[0]))
        config.flush()
        with server([binary, "--config", config.name, "--feature-gates=service.profilesSupport"], http_port) as pid:
            yield pid


def build(folder):
    """The path of the Collector's program."""
    manifest, binary = os.path.join(folder, "manifest.yaml"), os.path.join(folder, "out", "collector")
    text = (f"dist: {{name: collector, output_path: {folder}/out}}\n"
            f"receivers: [{{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver {VERSION}}}]\n"
            f"exporters: [{{gomod: go.opentelemetry.io/collector/exporter/nopexporter {VERSION}}}, "
            f"{{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter {VERSION}}}]\n"
            f"providers: [{{gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider {PROVIDERS_VERSION}}}, "
            f"{{gomod: go.opentelemetry.io/collector/confmap/provider/envprovider {PROVIDERS_VERSION}}}]\n")
    with contextlib.suppress(OSError), open(manifest, encoding="ascii") as f:
        if f.read() == text and os.path.exists(binary):
            return binary
    os.makedirs(folder, exist_ok=True)
    with open(manifest, "w", encoding="ascii") as f:
        f.write(text)
    environment = {**os.environ, "GOBIN": folder}
    for command in (["go", "install", f"go.opentelemetry.io/collector/cmd/builder@{VERSION}"],
                    [os.path.join(folder, "builder"), "--config", manifest]):
        if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode:
            fail("cannot build the Collector: " + " ".join(command))
    return binary
