/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map in which OpenTelemetry's eBPF instrumentation (OBI) notes the span of each thread. OBI pins it and may come, go
 * and begin anew at any time; so its pin is looked at with each report. Samples use the map that is there
 * (bpf/context/noted_spans.bpf.h). The agent's thread alone calls this.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/sampler_state.h"
#include "base/log.h"

#define NOTED_SPANS_PIN "/sys/fs/bpf/otel/traces_ctx_v1"

static int put_map(const struct sampler *s, int fd)
{
	uint32_t first = 0;

	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.noted_spans), &first, &fd, BPF_ANY) ? -errno : 0;
}

static void forget_map(struct sampler *s)
{
	uint32_t first = 0;

	if (!s->noted_spans_id)
		return;
	s->noted_spans_id = 0;
	(void)bpf_map_delete_elem(bpf_map__fd(s->skel->maps.noted_spans), &first);
	log_info("%s is gone: samples have the spans alone that programs say themselves", NOTED_SPANS_PIN);
}

static void take_map(struct sampler *s, int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int error = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : 0;

	if (!error && info.id == s->noted_spans_id)
		return;
	if (!error)
		error = put_map(s, fd);
	if (!error) {
		s->noted_spans_id = info.id;
		log_info("samples have the spans that %s notes", NOTED_SPANS_PIN);
		return;
	}
	forget_map(s);
	if (s->noted_spans_refused == info.id)
		return;
	s->noted_spans_refused = info.id;
	log_warn("the spans that %s notes are not used: %s (a map of type %u, keys of %u bytes, values of %u; wanted: an "
		 "LRU hash, "
		 "8, 24)",
		 NOTED_SPANS_PIN, strerror(-error), info.type, info.key_size, info.value_size);
}

void sampler_look_for_spans(struct sampler *s)
{
	int fd;

	if (s->chains[CONTEXT_ID].error == -EOPNOTSUPP)
		return;
	fd = bpf_obj_get(NOTED_SPANS_PIN);
	if (fd < 0) {
		forget_map(s);
		return;
	}
	take_map(s, fd);
	close(fd);
}
