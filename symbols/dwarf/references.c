/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows references, at most MAX_HOPS of them, and finds the scopes around an entry. A flat walk does not know what stands
 * above an entry it is led to. If a name needs that (static functions of C++ by gcc), the unit is walked once more and the
 * scopes of all such functions in it are kept.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/dwarf/references.h"

enum {
	MAX_HOPS = 16,	      /* concrete function, abstract one, declaration: three are usual */
	MAX_SCOPES = 1 << 21, /* of all units: 48 MB; what comes later keeps its bare name */
	MAX_NESTING = 64,     /* scopes within each other */
	MAX_NAME_BYTES = 64 << 10,
	NO_SCOPE = UINT32_MAX,
};

struct scope {
	struct dwarf_value name; /* form 0: none */
	uint32_t parent;	 /* a smaller index, or NO_SCOPE */
};

/* A function without a linkage name, and where it stands. */
struct member {
	uint64_t off;
	uint32_t scope;
};

/* The scopes of one unit. */
struct scopes {
	struct scope *scopes;
	size_t scope_cnt, scope_cap;
	struct member *members; /* by rising offset */
	size_t member_cnt, member_cap;
};

static void free_scopes(struct scopes *s)
{
	if (!s)
		return;
	free(s->scopes);
	free(s->members);
	free(s);
}

void dwarf_names_init(struct dwarf_names *n, struct code_names *names, struct dwarf_info *info, struct dwarf_info *common)
{
	*n = (struct dwarf_names){ .names = names, .info = info, .common = common };
}

void dwarf_names_fini(struct dwarf_names *n)
{
	size_t pos = 0;
	void *scopes;

	while (map_next(&n->scopes, &pos, NULL, &scopes))
		free_scopes(scopes);
	map_fini(&n->scopes);
	map_fini(&n->functions);
	buf_fini(&n->text);
}

/* An entry, and where it was read. */
struct place {
	struct dwarf_info *info;
	struct dwarf_unit *unit;
	uint64_t off;
};

/* Finds the entry that @die of @from refers to. */
static bool follow(const struct dwarf_names *n, const struct place *from, const struct dwarf_die *die, struct place *ret)
{
	enum dwarf_attribute attribute = dwarf_has(die, DWARF_AT_ORIGIN) ? DWARF_AT_ORIGIN : DWARF_AT_SPECIFICATION;
	struct dwarf_die unit_die;
	bool in_common;

	if (!dwarf_has(die, attribute) || !dwarf_reference(from->unit, die->values[attribute], &ret->off, &in_common))
		return false;
	ret->info = in_common ? n->common : from->info;
	ret->unit = ret->info ? dwarf_unit_at(ret->info, ret->off) : NULL;
	if (!ret->unit || ret->unit->is_broken)
		return false;
	return ret->unit->is_read || !dwarf_unit_read(ret->info, ret->unit, &unit_die);
}

/* --- scopes --- */

struct scope_walk {
	struct dwarf_names *n;
	struct place unit;
	struct scopes *scopes;
	struct level {
		uint32_t depth;
		uint32_t scope; /* of a function: the one around it */
		bool is_function;
		struct dwarf_value name; /* of a function, which becomes a scope when it has a class in it */
	} stack[MAX_NESTING];
	size_t height;
};

/* The name of the scope @die. A class that is defined outside of where it was declared has its name there. */
static struct dwarf_value scope_name(struct scope_walk *w, const struct dwarf_die *die)
{
	struct dwarf_die declared;
	struct place to;

	if (dwarf_has(die, DWARF_AT_NAME))
		return die->values[DWARF_AT_NAME];
	if (dwarf_has(die, DWARF_AT_SPECIFICATION) && follow(w->n, &w->unit, die, &to) && to.unit == w->unit.unit &&
	    !dwarf_die_read(to.info, to.unit, to.off, &declared) && dwarf_has(&declared, DWARF_AT_NAME))
		return declared.values[DWARF_AT_NAME];
	return (struct dwarf_value){ .raw = die->tag };
}

static int add_scope(struct scope_walk *w, struct dwarf_value name, uint32_t parent, uint32_t *ret)
{
	struct scopes *s = w->scopes;

	if (vec_reach(&s->scopes, &s->scope_cap, s->scope_cnt))
		return -ENOMEM;
	s->scopes[s->scope_cnt] = (struct scope){ name, parent };
	*ret = (uint32_t)s->scope_cnt++;
	w->n->scope_cnt++;
	return 0;
}

/* A class or namespace. */
static int on_type(struct scope_walk *w, const struct level *around, struct dwarf_value name, uint32_t *ret)
{
	uint32_t parent = around ? around->scope : NO_SCOPE;
	int error = 0;

	if (around && around->is_function && around->name.form)
		error = add_scope(w, around->name, around->scope, &parent);
	return error ? error : add_scope(w, name, parent, ret);
}

static int on_member(struct scope_walk *w, uint64_t off, uint32_t scope)
{
	struct scopes *s = w->scopes;

	if (vec_reach(&s->members, &s->member_cap, s->member_cnt))
		return -ENOMEM;
	s->members[s->member_cnt++] = (struct member){ off, scope };
	w->n->scope_cnt++;
	return 0;
}

static int on_scope(void *arg, const struct dwarf_die *die)
{
	struct scope_walk *w = arg;
	const struct level *around;
	struct level level = { .depth = die->depth, .scope = NO_SCOPE, .is_function = die->tag == DW_TAG_subprogram };
	int error = 0;

	while (w->height && w->stack[w->height - 1].depth >= die->ended_depth)
		w->height--;
	around = w->height ? &w->stack[w->height - 1] : NULL;
	if (w->n->scope_cnt >= MAX_SCOPES)
		return 0;
	level.name = scope_name(w, die);
	if (!level.is_function) {
		error = on_type(w, around, level.name, &level.scope);
	} else if (around && !around->is_function && around->scope != NO_SCOPE) { /* those within functions start anew */
		level.scope = around->scope;
		if (dwarf_has(die, DWARF_AT_NAME) && !dwarf_has(die, DWARF_AT_LINKAGE_NAME))
			error = on_member(w, die->off, level.scope);
	}
	if (die->has_children && w->height < MAX_NESTING)
		w->stack[w->height++] = level;
	return error;
}

/* The scopes of the unit at @place; NULL without memory. Broken DWARF ends them early. */
static const struct scopes *scopes_of(struct dwarf_names *n, const struct place *place)
{
	struct scopes *s = map_get(&n->scopes, (uintptr_t)place->unit);
	struct scope_walk w = { .n = n, .unit = *place };

	if (s)
		return s;
	s = w.scopes = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	dwarf_unit_walk(place->info, place->unit, DWARF_WALK_SCOPES, on_scope, &w);
	if (map_put(&n->scopes, (uintptr_t)place->unit, s)) {
		free_scopes(s);
		return NULL;
	}
	return s;
}

static uint32_t find_scope(const struct scopes *s, uint64_t off)
{
	size_t i = search_first(at, s->member_cnt, s->members[at].off >= off);

	return i < s->member_cnt && s->members[i].off == off ? s->members[i].scope : NO_SCOPE;
}

/* The name given to a scope without one. */
static const char *stand_in(uint64_t tag, bool is_lambda)
{
	if (tag == DW_TAG_namespace)
		return "(anonymous namespace)";
	return is_lambda ? "{lambda}" : "(anonymous class)";
}

/* Writes the names of the scopes around the function @name, whose entry is at @place, each with "::" behind it. */
static void put_scopes(struct dwarf_names *n, const struct place *place, const char *name)
{
	const struct scopes *s = scopes_of(n, place);
	const struct scope *chain[MAX_NESTING];
	size_t count = 0;

	for (uint32_t i = s ? find_scope(s, place->off) : NO_SCOPE; i != NO_SCOPE && count < MAX_NESTING;
	     i = s->scopes[i].parent)
		chain[count++] = &s->scopes[i];
	while (count--) {
		struct dwarf_value value = chain[count]->name;
		size_t len;
		const char *text = dwarf_string(place->info, place->unit, value, &len);

		if (text)
			buf_append(&n->text, text, len);
		else
			buf_puts(&n->text, stand_in(value.raw, !count && !strcmp(name, "operator()")));
		buf_puts(&n->text, "::");
	}
}

/* --- functions --- */

/* The facts known of a function after some references. */
struct found {
	const char *linkage_name, *name;
	size_t linkage_name_len, name_len;
	struct place named; /* where the name stands */
	uint64_t decl_line;
	bool is_external;
};

/* Takes from @die what has not been found yet. */
static void take_die(struct found *f, const struct place *place, const struct dwarf_die *die)
{
	const struct dwarf_value *v = die->values;

	if (!f->linkage_name && dwarf_has(die, DWARF_AT_LINKAGE_NAME))
		f->linkage_name = dwarf_string(place->info, place->unit, v[DWARF_AT_LINKAGE_NAME], &f->linkage_name_len);
	if (!f->name && dwarf_has(die, DWARF_AT_NAME)) {
		f->name = dwarf_string(place->info, place->unit, v[DWARF_AT_NAME], &f->name_len);
		f->named = *place;
		f->named.off = die->off;
	}
	if (!f->decl_line && dwarf_has(die, DWARF_AT_DECL_LINE))
		f->decl_line = v[DWARF_AT_DECL_LINE].raw;
	/* A flag that is there without a value is set. */
	f->is_external |= dwarf_has(die, DWARF_AT_EXTERNAL) &&
			  (v[DWARF_AT_EXTERNAL].raw || v[DWARF_AT_EXTERNAL].form == DW_FORM_flag_present);
}

static uint32_t add_function(struct dwarf_names *n, const struct found *f)
{
	uint32_t line = f->decl_line <= UINT32_MAX ? (uint32_t)f->decl_line : 0;

	if (f->linkage_name && f->linkage_name_len)
		return code_names_function(n->names, f->linkage_name, f->linkage_name_len, line);
	if (!f->name || !f->name_len)
		return CODE_NONE;
	buf_reset(&n->text);
	if (!f->is_external)
		put_scopes(n, &f->named, f->name);
	buf_append(&n->text, f->name, f->name_len);
	if (n->text.failed)
		code_names_lack_memory(n->names);
	if (n->text.failed || !dwarf_spend(n->info->budget, n->text.len) || n->text.len > MAX_NAME_BYTES)
		return CODE_NONE;
	return code_names_function(n->names, (const char *)n->text.data, n->text.len, line);
}

/* Follows the references from @die, which is at @place, until a linkage name turns up. */
static uint32_t resolve(struct dwarf_names *n, struct place place, const struct dwarf_die *die)
{
	struct found f = { 0 };
	struct dwarf_die next;

	take_die(&f, &place, die);
	for (unsigned hops = 0; hops < MAX_HOPS && !(f.linkage_name && f.decl_line); hops++) {
		struct place to;

		if (!follow(n, &place, die, &to) || dwarf_die_read(to.info, to.unit, to.off, &next))
			break;
		place = to;
		die = &next;
		take_die(&f, &place, die);
	}
	return add_function(n, &f);
}

uint32_t dwarf_names_function(struct dwarf_names *n, struct dwarf_unit *unit, const struct dwarf_die *die)
{
	enum { ITS_OWN = 1 << DWARF_AT_LINKAGE_NAME | 1 << DWARF_AT_NAME | 1 << DWARF_AT_DECL_LINE };
	struct place here = { n->info, unit, die->off }, to;
	struct dwarf_die origin;
	uint32_t function;
	uint64_t key;
	void *known;

	if (die->present & ITS_OWN)
		return resolve(n, here, die);
	if (!follow(n, &here, die, &to))
		return CODE_NONE;
	/* Offsets in two files: the highest bit tells them apart. */
	key = to.off | (uint64_t)(to.info == n->common) << 63;
	known = map_get(&n->functions, key);
	if (known)
		return (uint32_t)((uintptr_t)known - 1);
	function = dwarf_die_read(to.info, to.unit, to.off, &origin) ? CODE_NONE : resolve(n, to, &origin);
	map_put(&n->functions, key, (void *)((uintptr_t)function + 1));
	return function;
}
