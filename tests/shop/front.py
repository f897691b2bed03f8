#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shop's front in Python, and its customers: each request asks for a price and has a letter sent, and is a trace. Spans, logs
and metrics are those of OpenTelemetry's SDK; a span says its thread, which the SDK leaves to who makes it.

usage: front.py SECONDS MAIL_URL PRICE_URL..."""
import logging
import os
import socket
import sys
import threading
import time
import urllib.request

from opentelemetry import metrics, trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


class Threads(SpanProcessor):
    def on_start(self, span, parent_context=None):
        span.set_attribute("thread.id", threading.get_native_id())


def providers():
    of = Resource.create({"service.name": "front", "process.pid": os.getpid(), "host.name": socket.gethostname()})
    spans, logs = TracerProvider(resource=of), LoggerProvider(resource=of)
    spans.add_span_processor(Threads())
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=500))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(), schedule_delay_millis=500))
    numbers = MeterProvider(resource=of, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=1000)])
    trace.set_tracer_provider(spans)
    set_logger_provider(logs)
    metrics.set_meter_provider(numbers)
    logging.getLogger().addHandler(LoggingHandler(logger_provider=logs))
    return spans, logs, numbers


def call(url, method):
    headers = {}
    inject(headers)
    with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers)) as answer:
        return answer.read()


def render(n):
    return "".join(f"<li>{i * n}</li>" for i in range(60000))


def main():
    seconds, mail, prices = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ended, tracer = providers(), trace.get_tracer("front")
    took = metrics.get_meter("front").create_histogram("request.duration", unit="s")
    end, n = time.time() + seconds, 0
    while time.time() < end:
        n, begin = n + 1, time.time()
        with tracer.start_as_current_span("GET /cart"):
            for price in prices:
                call(f"{price}/price?n={n}", "GET")
            with tracer.start_as_current_span("render"):
                render(n)
            call(f"{mail}/mail", "POST")
            took.record(time.time() - begin)
            if time.time() - begin > 0.2:
                logging.error("cart %d took %.3f s", n, time.time() - begin)
    for provider in ended:
        provider.shutdown()


main()
