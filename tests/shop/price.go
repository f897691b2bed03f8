// SPDX-License-Identifier: Apache-2.0
// Command price is the shop's service in Go: GET /price?n=N sorts for a while, ten times as long for each fifth N. Spans
// are those of OpenTelemetry's SDK; they go into the labels of goroutines, where hearth reads them.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"sort"
	"strconv"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

//go:noinline
func discount(rounds int) int {
	sum := 0
	for i := 0; i < rounds; i++ {
		prices := rand.Perm(20000)
		sort.Ints(prices)
		sum += prices[i%len(prices)]
	}
	return sum
}

func main() {
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx) // by OTEL_EXPORTER_OTLP_ENDPOINT
	if err != nil {
		log.Fatal(err)
	}
	from, err := resource.New(ctx, resource.WithFromEnv(), resource.WithProcessPID(), resource.WithHost())
	if err != nil {
		log.Fatal(err)
	}
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	defer spans.Shutdown(ctx)
	otel.SetTracerProvider(otelpyroscope.NewTracerProvider(spans))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	tracer := otel.Tracer("price")
	http.HandleFunc("/price", func(w http.ResponseWriter, r *http.Request) {
		up := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		_, span := tracer.Start(up, "GET /price")
		defer span.End()
		n, rounds := 0, 10
		if n, _ = strconv.Atoi(r.URL.Query().Get("n")); n%5 == 0 {
			rounds *= 10
		}
		fmt.Fprintln(w, discount(rounds))
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
