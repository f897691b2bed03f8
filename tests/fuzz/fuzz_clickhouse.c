/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClickHouse's answers, on arbitrary bytes: this target stands in for the connection
 * (backend/store/clickhouse/client.c), everything above it is as ever. The input: a byte that says what is asked, one
 * how (by a label, of some stacks), then answers in the order they are asked for, each with its length (2 bytes) before
 * it; the last one is what is left. Every text and number that is told is looked at, profiles are written as OTLP.
 * Seeds are made at start.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles.h"

enum { BY_LABEL = 1, SOME_STACKS = 2, KINDS_ASKED = 4, STACK_WORDS = 16, ERROR_CHARS = 100 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *at, *end;
	uint64_t seen; /* a sum of what was told, so that nothing of it is left out */
} input;

/* --- the connection --- */

struct click_connection {
	char nothing;
};

int click_address_init(struct click_address *a, const char *place, const char *password_file)
{
	(void)password_file;
	*a = (struct click_address){ .display = strdup(place), .database = strdup("db") };
	return a->display && a->database ? 0 : -ENOMEM;
}

void click_address_fini(struct click_address *a)
{
	free(a->display);
	free(a->database);
}

int click_connect(const struct click_address *a, const _Atomic bool *abandon, struct metric *const failures[CLICK_FAILURES],
		  struct click_connection **ret)
{
	(void)failures;
	(void)a;
	(void)abandon;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void click_disconnect(struct click_connection *c)
{
	free(c);
}

const char *click_error(const struct click_connection *c)
{
	(void)c;
	return "";
}

enum click_failure click_failure(const struct click_connection *c)
{
	(void)c;
	return CLICK_REFUSED;
}

void click_param(struct buf *params, const char *name, const char *value)
{
	buf_printf(params, "&%s=%s", name, value);
}

/* In memory of its own, without room behind it: who reads on is caught. */
static struct buf next_answer(void)
{
	const size_t left = (size_t)(input.end - input.at);
	const size_t wanted = left >= 2 ? input.at[0] | (size_t)input.at[1] << 8 : 0;
	struct buf answer = BUF_EMPTY;

	input.at += left >= 2 ? 2 : left;
	answer.len = wanted < (size_t)(input.end - input.at) ? wanted : (size_t)(input.end - input.at);
	if (!answer.len)
		return answer;
	answer.cap = answer.len + 1;
	answer.data = malloc(answer.cap);
	if (!answer.data)
		abort();
	memcpy(answer.data, input.at, answer.len);
	input.at += answer.len;
	return answer;
}

int click_request(struct click_connection *c, const struct click_request *r, struct buf *answer)
{
	static const uint8_t note[] = { CLICK_SCHEMA_VERSION, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 };

	(void)c;
	if (!answer)
		return 0;
	buf_fini(answer);
	*answer = BUF_EMPTY;
	if (strstr(r->sql, "FROM hearth_schema"))
		buf_append(answer, note, sizeof(note));
	else
		*answer = next_answer();
	return 0;
}

/* --- who is told --- */

static void see(const char *text)
{
	input.seen += strlen(text);
}

static int see_sum(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events)
{
	struct store *s = arg;
	uint32_t node = number;
	struct store_node at;
	struct store_frame f;

	see(group);
	input.seen += (uint64_t)weight + events;
	for (; node && node < s->read->node_count(s); node = at.parent) {
		if (s->read->nodes(s, node, 1, &at) || at.parent >= node || s->read->frame(s, at.frame, &f))
			abort();
		see(f.function);
		see(f.module);
		see(f.path);
	}
	return 0;
}

static int see_label(void *arg, const char *label)
{
	(void)arg;
	see(label);
	return 0;
}

static int see_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	(void)arg;
	see(value);
	input.seen += (uint64_t)weight + events;
	return 0;
}

static int see_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	(void)arg;
	input.seen += (uint64_t)weight + events;
	for (uint32_t i = 0; i < labels->count; i++) {
		const struct str *texts[] = { &labels->items[i].key, &labels->items[i].value.string };

		for (size_t t = 0; t < 2; t++)
			for (uint32_t c = 0; c < texts[t]->len; c++)
				input.seen += (uint8_t)texts[t]->data[c];
	}
	return 0;
}

static int see_kind(void *arg, const struct store_kind *kind)
{
	(void)arg;
	see(kind->type);
	see(kind->unit);
	see(kind->period_type);
	see(kind->period_unit);
	return 0;
}

static int see_executable(void *arg, const struct store_executable *e)
{
	(void)arg;
	if (!e->path)
		return 0;
	see(e->path);
	see(e->build_id);
	see(e->id_kind);
	return 0;
}

static int see_frame(void *arg, const struct store_frame *f)
{
	(void)arg;
	see(f->build_id);
	see(f->function);
	return 0;
}

static int see_profiles(void *arg, struct profiles *p)
{
	struct buf out = BUF_EMPTY;

	(void)arg;
	if (otlp_encode(p, NULL, &out))
		abort();
	input.seen += out.len;
	buf_fini(&out);
	return 0;
}

/* --- one input --- */

enum question {
	SUM_STACKS,
	SUM_TIMES,
	LABEL_VALUES,
	LABELS,
	SERIES,
	KINDS,
	EXECUTABLES,
	EXPORT,
	STATUS,
	BARE_FRAMES,
	ERRORS,
	QUESTIONS
};

static int ask(struct store *s, enum question question, const struct store_selection *sel, const char *by)
{
	struct store_status status;
	uint32_t next;

	switch (question) {
	case SUM_STACKS:
		return s->read->sum_stacks(s, sel, by, see_sum, s);
	case SUM_TIMES:
		return s->read->sum_times(s, sel, 1000, by, see_sum, s);
	case LABEL_VALUES:
		return s->read->label_values(s, sel, "comm", see_value, NULL);
	case LABELS:
		return s->read->labels(s, sel, see_label, NULL);
	case SERIES:
		return s->read->series(s, sel, see_series, NULL);
	case KINDS:
		return s->read->kinds(s, sel, see_kind, NULL);
	case EXECUTABLES:
		return s->read->executables(s, sel, see_executable, NULL);
	case EXPORT:
		return s->read->export(s, sel, see_profiles, NULL);
	case STATUS:
		return s->read->status(s, &status);
	default:
		return s->read->bare_frames(s, 0, &next, see_frame, NULL);
	}
}

static void ask_store(enum question question, unsigned how)
{
	static const struct store_config config = { .place = "clickhouse+http://x", .read_only = true };
	static uint64_t stacks[STACK_WORDS];
	struct store_selection sel = { .to_ns = UINT64_MAX, .kind = how & KINDS_ASKED ? NULL : "samples" };
	struct store_error why;
	struct store *s;

	memset(stacks, 0xfd, sizeof(stacks));
	if (how & SOME_STACKS) {
		sel.stacks = stacks;
		sel.stack_count = (size_t)STACK_WORDS * 64;
	}
	if (store_clickhouse_open(&config, NULL, &s, &why))
		abort();
	(void)ask(s, question, &sel, how & BY_LABEL ? "comm" : NULL);
	(void)ask(s, question, &sel, NULL); /* again, of what is known now */
	s->read->rest(s, true);
	s->close(s);
}

/* Printable whatever came, and never cut within the header. */
static void read_error(unsigned how)
{
	struct buf header = next_answer(), body = next_answer();
	char text[ERROR_CHARS];
	enum click_failure failure = CLICK_FAILURES;
	int err = click_read_error((long)how * 3, header.len ? buf_text(&header) : NULL, &body, &failure, text,
				   sizeof(text));

	if (err > 0 || (err && (!text[0] || failure >= CLICK_FAILURES)))
		abort();
	for (size_t i = 0; err && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
	buf_fini(&header);
	buf_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	input.at = data + 2;
	input.end = data + size;
	if (data[0] % QUESTIONS == ERRORS)
		read_error(data[1]);
	else
		ask_store((enum question)(data[0] % QUESTIONS), data[1]);
	return 0;
}

/* --- seeds --- */

struct seed {
	struct buf all, answer;
};

static void put_z(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

static void end_answer(struct seed *seed)
{
	put_number(&seed->all, seed->answer.len, 2);
	buf_append(&seed->all, seed->answer.data, seed->answer.len);
	buf_reset(&seed->answer);
}

static void put_attributes(struct buf *b)
{
	varint_append(b, 2);
	put_z(b, "comm");
	put_z(b, "thread.id");
	varint_append(b, 2);
	put_z(b, "prog");
	put_z(b, "17");
	varint_append(b, 2);
	put_number(b, VALUE_STRING, 1);
	put_number(b, VALUE_INT, 1);
	varint_append(b, 2);
	put_z(b, "");
	put_z(b, "");
}

/* Stack 5 is of frames 6 and 7; their names. */
static void put_stacks(struct seed *seed)
{
	struct buf *b = &seed->answer;

	put_number(b, 5, 8);
	varint_append(b, 2);
	put_number(b, 6, 8);
	put_number(b, 7, 8);
	end_answer(seed);
	for (uint64_t id = 6; id <= 7; id++) {
		put_number(b, id, 8);
		put_z(b, id == 6 ? "main" : "");
		put_z(b, "");
		put_z(b, "a.c");
		for (uint64_t number = 1; number <= 4; number++)
			put_number(b, number, 8);
		put_number(b, id & 1, 1);
		put_z(b, "native");
		put_z(b, "/bin/a");
		put_z(b, "aabb");
		put_z(b, "gnu");
		for (uint64_t number = 1; number <= 3; number++)
			put_number(b, number << 12, 8);
		put_attributes(b);
		put_attributes(b);
	}
	end_answer(seed);
	put_number(b, 7, 8);
	for (size_t i = 0; i < 3; i++)
		put_z(b, "given");
	put_number(b, 3, 8);
	put_number(b, 2, 8);
	end_answer(seed);
}

static void put_export(struct seed *seed)
{
	struct buf *b = &seed->answer;

	put_number(b, 480000, 8);
	end_answer(seed);
	put_number(b, 5, 8);
	end_answer(seed);
	put_stacks(seed);
	put_number(b, 8, 8);
	for (size_t i = 0; i < 6; i++)
		put_z(b, "samples");
	put_number(b, 1000, 8);
	put_number(b, 3, 1); /* times and values */
	put_number(b, 1, 2);
	put_attributes(b);
	end_answer(seed);
	put_number(b, 9, 8);
	put_attributes(b);
	end_answer(seed);
	put_number(b, 8, 8);
	put_number(b, 5, 8);
	put_number(b, 9, 8);
	put_number(b, 2, 2);
	put_number(b, 1700000000000000000, 8);
	put_number(b, 3, 8);
	put_z(b, "0123456789abcdef");
	put_z(b, "01234567");
	end_answer(seed);
}

static void put_answers(struct seed *seed, enum question question, unsigned how)
{
	struct buf *b = &seed->answer;

	if (question == EXPORT) {
		put_export(seed);
		return;
	}
	if (question == ERRORS) {
		put_z(b, "516");
		end_answer(seed);
		buf_puts(b, "Code: 516. DB::Exception: x: Authentication failed\r\n");
		end_answer(seed);
		return;
	}
	if (how & BY_LABEL || question == LABEL_VALUES || question == LABELS)
		put_z(b, "prog");
	for (size_t i = 0; i < 4 && question == KINDS; i++)
		put_z(b, "cpu");
	if (question == SERIES)
		put_attributes(b);
	put_number(b, 5, 8); /* a stack, weight and events, and more of a status */
	for (size_t i = 0; i < (question == STATUS ? 6 : 2); i++)
		put_number(b, 1 + i, 8);
	end_answer(seed);
	put_stacks(seed);
}

static void write_seed(const char *folder, enum question question, unsigned how)
{
	struct seed seed = { 0 };
	char path[4096];
	AUTO_FCLOSE FILE *f = NULL;

	buf_putc(&seed.all, (char)question);
	buf_putc(&seed.all, (char)how);
	put_answers(&seed, question, how);
	snprintf(path, sizeof(path), "%s/seed-%d-%u", folder, (int)question, how);
	f = fopen(path, "wb");
	if (f)
		fwrite(seed.all.data, 1, seed.all.len, f);
	buf_fini(&seed.all);
	buf_fini(&seed.answer);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;

	for (unsigned question = 0; folder && question < QUESTIONS; question++)
		for (unsigned how = 0; how <= (question < LABELS ? 3u : 0u); how++)
			write_seed(folder, (enum question)question, how);
	return 0;
}
