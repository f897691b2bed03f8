/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a function is in its SharedFunctionInfo, or in the ScopeInfo in that place once it was compiled: an array of
 * words whose flags tell what follows the names of the function's variables. Layout: V8's src/objects/scope-info.tq of 9.x
 * to 14.x, and tests/v8/ for each version.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/v8/v8_function.h"

enum {
	SCOPE_FLAGS = 8, /* offsets */
	SCOPE_LOCALS = 24,
	SCOPE_START = 32,   /* where positions stand before the names of locals */
	SCOPE_INLINED = 75, /* that many locals are in a table of their own */
	MAX_LOCALS = 1 << 20,
	FIRST_WITH_START = 5, /* scope_first of such layouts */
};

/* Bits of the flags (ScopeFlags). */
enum {
	RECEIVER = 3 << 7, /* where the receiver is: */
	RECEIVER_ON_STACK = 1 << 7,
	RECEIVER_IN_CONTEXT = 2 << 7,
	HAS_SAVED_CLASS = 1 << 10,
	FUNCTION_VARIABLE = 3 << 12,
	HAS_INFERRED = 1 << 14,
};

enum {
	INTERPRETER_DATA_BYTECODE = 8, /* offset */
	DATA_STEPS = 4,
};

/*
 * Takes the name that @word is; *@ret stays where that is the empty string, or a small integer or an object in place of one.
 * 0 or -errno: nothing of sense is there any more, as the heap was moved meanwhile, and the name is not known.
 */
static int take_name(struct v8_heap *h, uint64_t word, uint64_t *ret)
{
	uint16_t type = v8_type(h, word);
	uint32_t chars;

	if (type == V8_NO_TYPE)
		return v8_is_smi(word) ? 0 : v8_unreadable(h);
	if (!v8_is_string(h, type))
		return 0;
	if (v8_field32(h, word, 12, &chars))
		return v8_unreadable(h);
	if (chars)
		*ret = word;
	return 0;
}

/* A ScopeInfo: its flags, and where the words behind the locals begin. */
static int open_scope(struct v8_heap *h, uint64_t scope, uint32_t *flags, uint32_t *rest)
{
	const struct v8_offsets *o = &h->layout->offset;
	uint64_t flag_word, locals;
	uint32_t n;

	if (v8_field(h, scope, SCOPE_FLAGS, &flag_word) || v8_field(h, scope, SCOPE_LOCALS, &locals))
		return v8_unreadable(h);
	if (!v8_is_smi(locals) || v8_smi(locals) < 0 || v8_smi(locals) > MAX_LOCALS)
		return -EBADMSG;
	n = (uint32_t)v8_smi(locals);
	*flags = (uint32_t)(flag_word >> o->scope_flags);
	*rest = 8 + 8 * o->scope_first + 8 * (n < SCOPE_INLINED ? 2 * n : n + 1);
	return 0;
}

/* The number of bytes between the locals and the function's own name. */
static uint32_t bytes_before_name(const struct v8_heap *h, uint32_t flags)
{
	uint32_t receiver = flags & RECEIVER, n = flags & HAS_SAVED_CLASS ? 8 : 0;

	if (h->layout->offset.scope_receiver && (receiver == RECEIVER_ON_STACK || receiver == RECEIVER_IN_CONTEXT))
		n += 8;
	return n;
}

/* Takes name and start out of a ScopeInfo. */
static int read_scope(struct v8_heap *h, uint64_t scope, struct v8_function *f)
{
	uint64_t own, inferred, start;
	uint32_t flags, at;
	int error = open_scope(h, scope, &flags, &at);

	if (error)
		return error;
	at += bytes_before_name(h, flags);
	if (flags & HAS_INFERRED) {
		if (v8_field(h, scope, at + (flags & FUNCTION_VARIABLE ? 16 : 0), &inferred))
			return v8_unreadable(h);
		error = take_name(h, inferred, &f->name);
	}
	if (!error && flags & FUNCTION_VARIABLE) {
		if (v8_field(h, scope, at, &own))
			return v8_unreadable(h);
		error = take_name(h, own, &f->name);
		at += 16;
	}
	if (error)
		return error;
	at += flags & HAS_INFERRED ? 8 : 0;
	if (v8_field(h, scope, h->layout->offset.scope_first >= FIRST_WITH_START ? SCOPE_START : at, &start))
		return v8_unreadable(h);
	if (v8_is_smi(start) && v8_smi(start) > 0)
		f->start = (uint32_t)v8_smi(start);
	return 0;
}

int v8_function_read(struct v8_heap *h, uint64_t word, struct v8_function *ret)
{
	const struct v8_layout *l = h->layout;
	uint16_t type = v8_type(h, word);
	uint64_t name, script;

	memset(ret, 0, sizeof(*ret));
	if (type == V8_NO_TYPE)
		return v8_unreadable(h);
	if (type != l->type.shared)
		return -EBADMSG;
	if (v8_field(h, word, l->offset.shared_name, &name) || v8_field(h, word, l->offset.shared_script, &script))
		return v8_unreadable(h);
	if (v8_type(h, script) == l->type.script)
		ret->script = script;
	if (v8_type(h, name) == l->type.scope_info)
		return read_scope(h, name, ret);
	return take_name(h, name, &ret->name);
}

int v8_function_of_closure(struct v8_heap *h, uint64_t word, uint64_t *ret)
{
	const struct v8_types *t = &h->layout->type;
	uint16_t type = v8_type(h, word);

	if (type == V8_NO_TYPE)
		return v8_unreadable(h);
	if (type < t->first_function || type > t->last_function)
		return -EBADMSG;
	return v8_field(h, word, h->layout->offset.function_shared, ret);
}

/* One step from what a SharedFunctionInfo has as its data to the bytecode: where to go on; 0: nowhere. */
static uint32_t data_step(const struct v8_layout *l, uint16_t type)
{
	if (type == l->type.code)
		return l->offset.code_deopt;
	if (l->type.interpreter_data && type == l->type.interpreter_data)
		return INTERPRETER_DATA_BYTECODE;
	if (l->type.baseline_data && type == l->type.baseline_data)
		return V8_BASELINE_BYTECODE;
	return l->type.code_container && type == l->type.code_container ? V8_CONTAINER_CODE : 0;
}

int v8_function_bytecode(struct v8_heap *h, uint64_t word, uint64_t *ret)
{
	uint64_t data;
	int error = v8_field(h, word, h->layout->offset.shared_data, &data);

	for (int i = 0; !error && i < DATA_STEPS; i++) {
		uint16_t type = v8_type(h, data);
		uint32_t step;

		if (type == V8_NO_TYPE)
			return v8_is_pointer(data) ? v8_unreadable(h) : -EBADMSG;
		if (type == h->layout->type.bytecode) {
			*ret = data;
			return 0;
		}
		step = data_step(h->layout, type);
		if (!step)
			return -EBADMSG;
		error = v8_field(h, data, step, &data);
	}
	return error ? error : -EBADMSG;
}
