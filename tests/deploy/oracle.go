// SPDX-License-Identifier: Apache-2.0

// What the Collector's own processors make of a resource: the truth that tests/deploy/oracle.sh holds hearth's attributes against.
//
//	usage: oracle PROCESSOR=CONFIG.json... <RESOURCE.json
//
// Each processor is started with its configuration, gets one log record with the resource of standard input (a map of texts), and hands
// it to the next; the resource that comes out is printed as a map.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourcedetectionprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"
)

var factories = map[string]func() processor.Factory{
	"k8sattributes":     k8sattributesprocessor.NewFactory,
	"resourcedetection": resourcedetectionprocessor.NewFactory,
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
	return value
}

func start(ctx context.Context, word string, next consumer.Logs) processor.Logs {
	name, file, _ := strings.Cut(word, "=")
	factory := factories[name]()
	var values map[string]any
	must(0, json.Unmarshal(must(os.ReadFile(file)), &values))
	config := factory.CreateDefaultConfig()
	must(0, confmap.NewFromStringMap(values).Unmarshal(config))
	telemetry := componenttest.NewNopTelemetrySettings()
	telemetry.Logger = must(zap.NewDevelopment())
	settings := processor.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: telemetry, BuildInfo: component.NewDefaultBuildInfo()}
	p := must(factory.CreateLogs(ctx, settings, config, next))
	must(0, p.Start(ctx, componenttest.NewNopHost()))
	return p
}

func main() {
	ctx := context.Background()
	var attributes map[string]any
	must(0, json.NewDecoder(os.Stdin).Decode(&attributes))
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	must(0, resource.Resource().Attributes().FromRaw(attributes))
	resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("one")
	var next consumer.Logs = must(consumer.NewLogs(func(_ context.Context, out plog.Logs) error {
		return json.NewEncoder(os.Stdout).Encode(out.ResourceLogs().At(0).Resource().Attributes().AsRaw())
	}))
	for i := len(os.Args) - 1; i > 0; i-- {
		next = start(ctx, os.Args[i], next)
	}
	must(0, next.ConsumeLogs(ctx, logs))
}
