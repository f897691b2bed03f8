/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "agent/samples/record.h"
#include "base/cleanup.h"

/* The content of a section of each known type: @min to @max elements of @bytes each. */
static const struct {
	uint32_t bytes, min, max;
} sections[] = {
	[SECTION_KERNEL] = { sizeof(uint64_t), 1, MAX_KERNEL_FRAMES },
	[SECTION_USER] = { sizeof(uint64_t), 1, MAX_USER_FRAMES },
	[SECTION_REGS] = { sizeof(struct sample_regs), 1, 1 },
	[SECTION_VALUE] = { sizeof(uint64_t), 1, 1 },
	[SECTION_STACK_POINTERS] = { sizeof(uint32_t), 2, 2 + MAX_USER_FRAMES },
	[SECTION_CHAIN] = { 2 * sizeof(uint64_t), 1, MAX_CHAIN_WORDS / 2 },
	[SECTION_CAPTURES] = { sizeof(uint64_t), 1, MAX_CAPTURE_WORDS },
	[SECTION_MORE] = { 2 * sizeof(uint64_t), 1, MAX_KINDS },
	[SECTION_WAIT] = { sizeof(struct wait_info), 1, 1 },
	[SECTION_WAKES] = { sizeof(struct wake), 1, MAX_WAKES },
	[SECTION_TARGET] = { sizeof(struct wait_target), 1, 1 },
	[SECTION_PROBE] = { sizeof(uint64_t), 1, 1 + PROBE_ARGS },
	[SECTION_LABELS] = { sizeof(uint64_t), 1, MAX_LABELS *(1 + (LABEL_KEY_BYTES + LABEL_VALUE_BYTES) / 8) },
	[SECTION_LINK] = { sizeof(struct span_info), 1, 1 },
	[SECTION_CONTEXT] = { 1, 1, MAX_CONTEXT_BYTES },
	[SECTION_RETURNS] = { 2 * sizeof(uint64_t), 1, 1 + MAX_PROBED_CALLS },
	[SECTION_PAGE] = { sizeof(uint64_t), 1, 1 },
	[SECTION_CGROUP] = { sizeof(uint64_t), 1, 1 },
	[SECTION_ENVIRONMENT] = { 1, 0, MAX_ENVIRONMENT_BYTES },
};

static void take_section(struct pending_sample *s, enum section_type type, const uint64_t *content, uint32_t count)
{
	switch (type) {
	case SECTION_KERNEL:
		s->kernel = content;
		s->kernel_cnt = count;
		break;
	case SECTION_USER:
		s->user = content;
		s->user_cnt = count;
		break;
	case SECTION_REGS:
		s->regs = (const void *)content;
		break;
	case SECTION_VALUE:
		s->value = *content;
		break;
	case SECTION_STACK_POINTERS:
		s->first_sp = content;
		s->sps = (const void *)(content + 1);
		s->sp_cnt = count - 2;
		break;
	case SECTION_CHAIN:
		s->chain = content;
		s->chain_cnt = 2 * count;
		break;
	case SECTION_CAPTURES:
		s->captures = content;
		s->capture_cnt = count;
		break;
	case SECTION_MORE:
		s->more = content;
		s->more_cnt = count;
		break;
	case SECTION_WAIT:
		s->wait = (const void *)content;
		break;
	case SECTION_LABELS:
		s->labels = content;
		s->label_words = count;
		break;
	case SECTION_LINK:
		s->span = (const void *)content;
		break;
	case SECTION_CONTEXT:
		s->context = (const void *)content;
		s->context_bytes = count;
		break;
	case SECTION_WAKES:
		s->wakes = (const void *)content;
		s->wake_cnt = count;
		break;
	case SECTION_TARGET:
		s->target = (const void *)content;
		break;
	case SECTION_RETURNS:
		s->returns = content;
		s->return_cnt = count;
		break;
	case SECTION_PAGE:
		s->page = *content;
		break;
	case SECTION_CGROUP:
		s->cgroup = *content;
		break;
	case SECTION_ENVIRONMENT:
		s->environment = (const void *)content;
		s->environment_bytes = count;
		break;
	case SECTION_PROBE:
		s->probe = (const void *)content;
		s->arg_cnt = s->probe->arg_cnt < count ? s->probe->arg_cnt : count - 1;
		break;
	default:
		break;
	}
}

uint32_t record_pid(const struct record *record)
{
	if (record->kind == RECORD_SAMPLE && record->size >= sizeof(struct sample_record))
		return ((const struct sample_record *)(const void *)record)->pid;
	if (record->kind == RECORD_STACK_CHUNK && record->size >= CHUNK_HEAD_BYTES)
		return ((const struct stack_chunk *)(const void *)record)->pid;
	if (record->kind == RECORD_OBJECT && record->size >= sizeof(struct object_record))
		return ((const struct object_record *)(const void *)record)->pid;
	return 0;
}

int record_parse(const struct record *record, struct pending_sample *ret)
{
	const struct sample_record *r = (const void *)record;
	const uint64_t *at = (const void *)(r + 1), *end;
	uint32_t seen = 0;

	if (record->kind != RECORD_SAMPLE || record->version != RECORD_VERSION || record->size < sizeof(*r) ||
	    record->size > MAX_RECORD_BYTES || record->size % sizeof(*at) || r->end >= END_MAX)
		return -EBADMSG;
	end = at + (record->size - sizeof(*r)) / sizeof(*at);
	*ret = (struct pending_sample){ .record = r, .value = 1 };
	while (at < end) {
		uint32_t type = SECTION_TYPE(*at), bytes = SECTION_BYTES(*at), words = bytes / sizeof(*at);

		words += bytes % sizeof(*at) > 0;
		if (!type || words > (size_t)(end - at) - 1)
			return -EBADMSG;
		if (type < ARRAY_LEN(sections) && sections[type].bytes) {
			uint32_t count = bytes / sections[type].bytes;

			if (count < sections[type].min || count > sections[type].max || bytes % sections[type].bytes ||
			    seen >> type & 1)
				return -EBADMSG;
			seen |= 1u << type;
			take_section(ret, type, at + 1, count);
		} else {
			ret->unknown_cnt++;
		}
		at += 1 + words;
	}
	return 0;
}

bool sample_next_label(const uint64_t *words, uint32_t count, uint32_t *at, struct sample_label *ret)
{
	uint32_t key_words, value_words;

	if (*at >= count)
		return false;
	ret->key_bytes = LABEL_KEY_OF(words[*at]);
	ret->value_bytes = LABEL_VALUE_OF(words[*at]);
	key_words = (ret->key_bytes + 7) / 8;
	value_words = (ret->value_bytes + 7) / 8;
	if (key_words + value_words > count - *at - 1)
		return false;
	ret->key = (const char *)&words[*at + 1];
	ret->value = (const char *)&words[*at + 1 + key_words];
	*at += 1 + key_words + value_words;
	return true;
}

uint64_t sample_put_back(const struct pending_sample *s, uint64_t pc, uint64_t cfa)
{
	if (!s->return_cnt || pc != s->returns[0])
		return pc;
	for (uint32_t i = 1; i < s->return_cnt; i++)
		if (s->returns[2 * i] + PUSHED_BY_CALL == cfa)
			return s->returns[2 * i + 1];
	return pc;
}

bool sample_differs(const struct pending_sample *s, const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < s->user_cnt; i++) {
		if (s->return_cnt && (s->user[i] & ~FRAME_EXACT) == s->returns[0])
			return false;
		if ((frames[i] ^ s->user[i]) & ~FRAME_EXACT)
			return true;
	}
	return false;
}
