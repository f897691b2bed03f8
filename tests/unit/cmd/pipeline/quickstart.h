/* SPDX-License-Identifier: Apache-2.0 */
/* Files as users of the collector distribution have them: every key that its examples use, in their spelling, and their slip
 * of an exporter's name among the processors. */
#ifndef HEARTH_TESTS_UNIT_CMD_PIPELINE_QUICKSTART_H
#define HEARTH_TESTS_UNIT_CMD_PIPELINE_QUICKSTART_H

static const char quickstart[] = "receivers:\n"
				 "  profiling:\n"
				 "    Tracers: \"perl,php,python,hotspot,ruby,v8,dotnet,go\"\n"
				 "    SamplesPerSecond: 20\n"
				 "  customprofilesreceiver:\n"
				 "    report_interval: 200ms\n"
				 "processors:\n"
				 "  customprofilesexporter:\n"
				 "    foo: \"bar\"\n"
				 "exporters:\n"
				 "  customprofilesexporter:\n"
				 "    ignore_profiles_without_container_id: true\n"
				 "    export_resource_attributes: true\n"
				 "    export_profile_attributes: true\n"
				 "    export_sample_attributes: true\n"
				 "    export_stack_frames: true\n"
				 "    export_stack_frame_types: [native, kernel, go, jvm, php, cpython]\n"
				 "    export_function_file: true\n"
				 "service:\n"
				 "  pipelines:\n"
				 "    profiles:\n"
				 "      receivers: [profiling, customprofilesreceiver]\n"
				 "      processors: [customprofilesexporter]\n"
				 "      exporters: [customprofilesexporter]\n";

static const char kubernetes[] =
	"receivers:\n"
	"  profiling: { Tracers: \"perl,php\", SamplesPerSecond: 20 }\n"
	"processors:\n"
	"  k8sattributes:\n"
	"    wait_for_metadata: true\n"
	"    wait_for_metadata_timeout: 10s\n"
	"    auth_type: \"serviceAccount\"\n"
	"    passthrough: false\n"
	"    filter: { node_from_env_var: TEST_NODE_NAME }\n"
	"    extract:\n"
	"      metadata: [k8s.cluster.uid, k8s.pod.name]\n"
	"      otel_annotations: true\n"
	"      labels:\n"
	"        - { tag_name: team, key: example.com/team, from: pod }\n"
	"        - { key_regex: 'app.*', from: namespace }\n"
	"    pod_association:\n"
	"      - sources: [{ from: resource_attribute, name: container.id }]\n"
	"exporters:\n"
	"  otlp: { endpoint: 'http://pyroscope:4040', tls: { insecure: true }, headers: { X-Scope-OrgID: a } }\n"
	"extensions:\n"
	"  pprof: { endpoint: ':1777' }\n"
	"service:\n"
	"  extensions: [pprof]\n"
	"  pipelines:\n"
	"    profiles: { receivers: [profiling], processors: [k8sattributes], exporters: [otlp] }\n";

#endif
