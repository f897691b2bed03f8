/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by the types of functions; marked ones have no name. */
#include "backend/query/shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/stack_sums.h"
#include "base/buf.h"
#include "base/intern.h"

/* Senders may make up types: MOST_TYPES are told apart, the rest is one more, "(other)". */
enum { MOST_TYPES = 62, NOT_LOOKED_AT = 0, FIRST_KIND = 1 };

struct shares {
	struct functions *functions;
	bool no_inline;
	struct intern *types; /* with their final NUL */
	struct stack_sums sums;
	struct buf kinds; /* a byte a function: FIRST_KIND + 2 * its type, and 1 when it has no name; or NOT_LOOKED_AT */
};

struct shares *shares_new(struct functions *functions, bool no_inline)
{
	struct shares *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->functions = functions;
	s->no_inline = no_inline;
	s->types = intern_new();
	if (s->types)
		return s;
	free(s);
	return NULL;
}

void shares_free(struct shares *s)
{
	if (!s)
		return;
	intern_free(s->types);
	stack_sums_fini(&s->sums);
	buf_fini(&s->kinds);
	free(s);
}

/* The kind of @function, or -ENOMEM. */
static int kind_of_function(struct shares *s, uint32_t function)
{
	const size_t len = s->kinds.len;
	struct function f;
	uint32_t type = MOST_TYPES;

	if (function >= len) {
		if (buf_reserve(&s->kinds, function + 1024 - len))
			return -ENOMEM;
		s->kinds.len += buf_room(&s->kinds);
		memset(s->kinds.data + len, NOT_LOOKED_AT, s->kinds.len - len);
	}
	if (s->kinds.data[function] != NOT_LOOKED_AT)
		return s->kinds.data[function];
	f = functions_get(s->functions, function);
	if (intern_add(s->types, f.type, strlen(f.type) + 1, &type) < 0)
		return -ENOMEM;
	if (type > MOST_TYPES)
		type = MOST_TYPES;
	s->kinds.data[function] = (uint8_t)(FIRST_KIND + 2 * type + !f.is_named);
	return s->kinds.data[function];
}

static int64_t kind_of_frame(void *arg, uint32_t frame)
{
	struct shares *s = arg;
	struct function_call call;
	int kind = functions_of_frame(s->functions, frame, &call);

	if (!kind && call.inlined && s->no_inline)
		return STACK_SUMS_CALLER;
	kind = kind ? kind : kind_of_function(s, call.function);
	return kind < 0 ? kind : kind - FIRST_KIND;
}

int shares_add(struct shares *s, const struct stacks *stacks)
{
	return stack_sums_add(&s->sums, stacks, 0, kind_of_frame, s);
}

static const char *type_of(const struct shares *s, const struct stack_sum *row)
{
	return row->key == MOST_TYPES ? "(other)" : intern_get(s->types, row->key, NULL);
}

static int heaviest_first(const void *a, const void *b, void *arg)
{
	const struct stack_sum *x = a, *y = b;
	const int64_t xw = weights_add(x->self[0], x->self[1]), yw = weights_add(y->self[0], y->self[1]);

	if (xw != yw)
		return xw > yw ? -1 : 1;
	return strcmp(type_of(arg, x), type_of(arg, y));
}

static void write_share(const char *type, const struct stack_sum *row, bool two_sides, struct json *j)
{
	static const char *const keys[2][2] = { { "self", "unnamed" }, { "self2", "unnamed2" } };

	json_object_begin(j);
	json_key(j, "type");
	json_string(j, type);
	for (unsigned side = 0; side <= two_sides; side++) {
		json_key(j, keys[side][0]);
		json_i64(j, row->self[side]);
		json_key(j, keys[side][1]);
		json_i64(j, row->marked[side]);
	}
	json_object_end(j);
}

void shares_write(struct shares *s, bool two_sides, struct json *j)
{
	if (s->sums.count)
		qsort_r(s->sums.rows, s->sums.count, sizeof(*s->sums.rows), heaviest_first, s);
	json_key(j, "types");
	json_array_begin(j);
	for (uint32_t i = 0; i < s->sums.count; i++)
		write_share(type_of(s, &s->sums.rows[i]), &s->sums.rows[i], two_sides, j);
	json_array_end(j);
}
