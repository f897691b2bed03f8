// SPDX-License-Identifier: Apache-2.0

// Asks a hearth what Grafana's data source asks, through Pyroscope's own client, and prints the answers as JSON, a line a codec.
//
//	usage: client URL FROM_MS TO_MS
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

const (
	cpu     = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
	samples = "process_cpu:samples:count:cpu:nanoseconds"
	offCPU  = "off_cpu:off_cpu:nanoseconds::"
)

// The answer, or the code of its error.
func result[T any](r *connect.Response[T], err error) any {
	if err != nil {
		return connect.CodeOf(err).String()
	}
	return r.Msg
}

func ask(c querierv1connect.QuerierServiceClient, from, to int64) map[string]any {
	ctx := context.Background()
	two := int64(2)
	stacks := func(kind, selector string, nodes *int64) any {
		return result(c.SelectMergeStacktraces(ctx, connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
			ProfileTypeID: kind, LabelSelector: selector, Start: from, End: to, MaxNodes: nodes})))
	}
	series := func(kind, selector string, step float64, limit *int64, by ...string) any {
		return result(c.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{
			ProfileTypeID: kind, LabelSelector: selector, Start: from, End: to, Step: step, GroupBy: by, Limit: limit})))
	}
	names := func(selector string) any {
		return result(c.LabelNames(ctx, connect.NewRequest(&typesv1.LabelNamesRequest{Matchers: []string{selector}, Start: from, End: to})))
	}
	values := func(name, selector string) any {
		return result(c.LabelValues(ctx, connect.NewRequest(&typesv1.LabelValuesRequest{Name: name, Matchers: []string{selector}, Start: from, End: to})))
	}
	one := int64(1)
	return map[string]any{
		"types":         result(c.ProfileTypes(ctx, connect.NewRequest(&querierv1.ProfileTypesRequest{Start: from, End: to}))),
		"types_open":    result(c.ProfileTypes(ctx, connect.NewRequest(&querierv1.ProfileTypesRequest{}))),
		"names":         names("{}"),
		"names_search":  names(`{service_name="search"}`),
		"values":        values("service_name", "{}"),
		"values_custom": values("team_of_three", "{}"),
		"values_offcpu": values("service_name", `{__profile_type__="`+offCPU+`"}`),
		"values_type":   values("__profile_type__", "{}"),
		"series":        result(c.Series(ctx, connect.NewRequest(&querierv1.SeriesRequest{LabelNames: []string{"service_name", "__profile_type__"}, Start: from, End: to}))),
		"stacks":        stacks(cpu, "{}", nil),
		"stacks_count":  stacks(samples, `{service_name="shop"}`, nil),
		"stacks_offcpu": stacks(offCPU, "{}", nil),
		"stacks_custom": stacks(cpu, `{team_of_three=~"a|z"}`, nil),
		"stacks_few":    stacks(cpu, "{}", &two),
		"stacks_absent": stacks("memory:alloc:bytes::", "{}", nil),
		"stacks_wrong":  stacks(cpu, `{service_name=`, nil),
		"points":        series(cpu, "{}", 15, nil),
		"points_by":     series(samples, "{}", 15, nil, "service_name"),
		"points_one":    series(samples, "{}", 15, &one, "service_name"),
		"points_step":   series(cpu, "{}", 0, nil),
		"points_two":    series(cpu, "{}", 15, nil, "service_name", "team_of_three"),
		"sites":         result(c.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpu, Start: from, End: to, Step: 15, StackTraceSelector: &typesv1.StackTraceSelector{CallSite: []*typesv1.Location{{Name: "main"}}}}))),
		"diff":          result(c.Diff(ctx, connect.NewRequest(&querierv1.DiffRequest{}))),
	}
}

func main() {
	from, _ := strconv.ParseInt(os.Args[2], 10, 64)
	to, _ := strconv.ParseInt(os.Args[3], 10, 64)
	out := json.NewEncoder(os.Stdout)
	for _, options := range [][]connect.ClientOption{{}, {connect.WithProtoJSON()}, {connect.WithSendGzip()}} {
		if err := out.Encode(ask(querierv1connect.NewQuerierServiceClient(http.DefaultClient, os.Args[1], options...), from, to)); err != nil {
			panic(err)
		}
	}
}
