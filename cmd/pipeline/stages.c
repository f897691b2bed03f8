/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of stages that are more than a key and a value: edits, tests of resources, limits, detectors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/nearest.h"
#include "base/text/parse.h"
#include "base/text/pattern.h"
#include "cmd/pipeline/component.h"

/* --- tests of resources --- */

static int compile(struct reader *r, const struct tree *at, unsigned flags, struct pattern **ret)
{
	struct pattern_error why;
	int err = pattern_new(at->text, flags, ret, &why);

	return err == -EINVAL ? pipeline_refuse(r, at, "'%s': %s", at->text, why.message) : err;
}

static int take_test(struct reader *r, const struct tree *t, bool is_regexp, struct stage_test *test)
{
	const struct tree *key = tree_find(t, "key"), *value = tree_find(t, "value");

	if (!key || key->kind != TREE_TEXT)
		return pipeline_refuse(r, t, "an attribute is a map with a 'key', and a 'value' where that counts");
	test->key = key->text;
	if (!value || value->kind == TREE_NULL)
		return 0;
	if (value->kind != TREE_TEXT)
		return pipeline_refuse(r, value, "a 'value' to compare with is a text");
	test->value = value->text;
	return is_regexp ? compile(r, value, 0, &test->pattern) : 0;
}

static int take_tests(struct reader *r, const struct tree *list, bool is_regexp, struct stage_match *match)
{
	struct stage_test *grown;
	int err = 0;

	if (list->kind != TREE_LIST)
		return pipeline_refuse(r, list, "'%s' is a list", list->key);
	grown = realloc(match->tests, (match->count + list->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	match->tests = grown;
	for (size_t i = 0; i < list->count && !err; i++) {
		match->tests[match->count] = (struct stage_test){ NULL };
		err = take_test(r, &list->items[i], is_regexp, &match->tests[match->count++]);
	}
	return err;
}

/* {match_type, attributes or resources or resource_attributes}: all must be true. */
static int take_match(struct reader *r, const struct tree *t, struct stage_match *match)
{
	const struct tree *type = tree_find(t, "match_type");
	bool is_regexp = type && type->kind == TREE_TEXT && !strcmp(type->text, "regexp");
	int err = 0;

	if (t->kind != TREE_MAP || !type || type->kind != TREE_TEXT || (!is_regexp && strcmp(type->text, "strict") != 0))
		return pipeline_refuse(r, type ? type : t, "'%s' is a map with a 'match_type', which is strict or regexp",
				       t->key);
	for (size_t i = 0; i < t->count && !err; i++) {
		const struct tree *list = &t->items[i];

		if (list == type)
			continue;
		if (strcmp(list->key, "resources") != 0 && strcmp(list->key, "attributes") != 0 &&
		    strcmp(list->key, "resource_attributes") != 0)
			return pipeline_refuse(
				r, list,
				"'%s' cannot be compared; there are 'attributes' and 'resources', both a resource's",
				list->key);
		err = take_tests(r, list, is_regexp, match);
	}
	if (!err && !match->count)
		return pipeline_refuse(r, t, "'%s' compares nothing; give 'resources' with a 'key' and a 'value'", t->key);
	return err;
}

static int take_matches(struct reader *r, const struct component *c, const char *below, bool *has_include,
			struct stage_match *include, bool *has_exclude, struct stage_match *exclude)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	const struct tree *t;
	int err;

	buf_printf(&path, "%sinclude", below);
	if (path.failed)
		return -ENOMEM;
	t = component_at(c, buf_text(&path));
	*has_include = t;
	err = t ? take_match(r, t, include) : 0;
	buf_reset(&path);
	buf_printf(&path, "%sexclude", below);
	if (path.failed)
		return -ENOMEM;
	t = component_at(c, buf_text(&path));
	*has_exclude = t;
	return err || !t ? err : take_match(r, t, exclude);
}

/* --- edits --- */

static int find_action(struct reader *r, const struct tree *t, enum edit_action *ret)
{
	static const char *const words[] = { [EDIT_INSERT] = "insert",
					     [EDIT_UPDATE] = "update",
					     [EDIT_UPSERT] = "upsert",
					     [EDIT_DELETE] = "delete",
					     [EDIT_CONVERT] = "convert" };
	const struct tree *action = tree_find(t, "action");
	struct nearest nearest;

	if (!action || action->kind != TREE_TEXT)
		return pipeline_refuse(r, t, "an edit has an 'action': insert, update, upsert, delete or convert");
	nearest = nearest_to(action->text);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		nearest_offer(&nearest, words[i]);
		if (strcmp(words[i], action->text) != 0)
			continue;
		*ret = (enum edit_action)i;
		return 0;
	}
	if (!strcmp(action->text, "extract") || !strcmp(action->text, "hash"))
		return pipeline_refuse(
			r, action,
			"the action '%s' is not done by hearth; there are insert, update, upsert, delete and convert",
			action->text);
	return pipeline_refuse(r, action, "there is no action '%s'; %s%s%s", action->text,
			       nearest.best ? "did you mean '" : "there are insert, update, upsert, delete and convert",
			       nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

static bool is_decimal(const char *text)
{
	text += *text == '-';
	return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
}

/* A text without quotes is what YAML takes it for. */
static struct any_value value_of(const struct tree *t)
{
	bool yes = !strcmp(t->text, "true");
	char *end;
	double real;

	if (t->is_plain && (yes || !strcmp(t->text, "false")))
		return (struct any_value){ .kind = VALUE_BOOL, .boolean = yes };
	if (t->is_plain && is_decimal(t->text))
		return (struct any_value){ .kind = VALUE_INT, .integer = strtoll(t->text, NULL, 10) };
	real = strtod(t->text, &end);
	if (t->is_plain && t->text[strcspn(t->text, "0123456789")] && !*end)
		return (struct any_value){ .kind = VALUE_DOUBLE, .real = real };
	return (struct any_value){ .kind = VALUE_STRING, .string = str_z(t->text) };
}

static int take_converted(struct reader *r, const struct tree *t, struct stage_edit *edit)
{
	static const struct {
		const char *word;
		enum value_kind kind;
	} kinds[] = { { "int", VALUE_INT }, { "double", VALUE_DOUBLE }, { "string", VALUE_STRING } };
	const struct tree *type = tree_find(t, "converted_type");

	for (size_t i = 0; type && type->kind == TREE_TEXT && i < ARRAY_LEN(kinds); i++) {
		edit->value.kind = kinds[i].kind;
		if (!strcmp(type->text, kinds[i].word))
			return 0;
	}
	return pipeline_refuse(r, type ? type : t, "'convert' has a 'converted_type': int, double or string");
}

static int take_operand(struct reader *r, const struct tree *t, struct stage_edit *edit)
{
	const struct tree *value = tree_find(t, "value"), *from = tree_find(t, "from_attribute");

	if (edit->action == EDIT_CONVERT)
		return take_converted(r, t, edit);
	if (edit->action == EDIT_DELETE)
		return 0;
	if (tree_find(t, "from_context"))
		return pipeline_refuse(r, tree_find(t, "from_context"),
				       "'from_context': no stage reads headers of requests");
	if (value && value->kind == TREE_TEXT)
		edit->value = value_of(value);
	else if (from && from->kind == TREE_TEXT)
		edit->from = from->text;
	else
		return pipeline_refuse(r, t, "this action has a 'value', a text or a number, or a 'from_attribute'");
	return 0;
}

static int take_edit(struct reader *r, const struct tree *t, struct stage_edit *edit)
{
	static const struct component_key keys[] = { { "action", NULL, NULL },	     { "key", NULL, NULL },
						     { "value", NULL, NULL },	     { "from_attribute", NULL, NULL },
						     { "pattern", NULL, NULL },	     { "converted_type", NULL, NULL },
						     { "from_context", NULL, NULL }, { NULL, NULL, NULL } };
	const struct tree *key = tree_find(t, "key"), *pattern = tree_find(t, "pattern");
	struct tree none = TREE_EMPTY;
	int err = component_read_keys(r, t, "an edit", keys, &none);

	tree_fini(&none);
	if (!err)
		err = find_action(r, t, &edit->action);
	if (err)
		return err;
	if (key && key->kind == TREE_TEXT)
		edit->key = key->text;
	else if (edit->action != EDIT_DELETE || !pattern || pattern->kind != TREE_TEXT)
		return pipeline_refuse(r, t, "an edit has a 'key'%s", edit->action == EDIT_DELETE ? " or a 'pattern'" : "");
	else
		err = compile(r, pattern, 0, &edit->pattern);
	return err ? err : take_operand(r, t, edit);
}

int stages_take_edits(struct reader *r, struct component *c)
{
	const struct tree *list = component_at(c, "attributes");
	struct stage_edits *edits = &c->edits;
	int err = 0;

	if (!list)
		list = component_at(c, "actions");
	c->stage = STAGE_EDIT;
	if (!list || list->kind != TREE_LIST || !list->count)
		return pipeline_refuse(r, list ? list : c->node,
				       "'%s' has a list of edits: 'attributes' of resource, 'actions' of attributes",
				       c->name);
	edits->items = calloc(list->count, sizeof(*edits->items));
	if (!edits->items)
		return -ENOMEM;
	for (size_t i = 0; i < list->count && !err; i++)
		err = take_edit(r, &list->items[i], &edits->items[edits->count++]);
	return err ? err
		   : take_matches(r, c, "", &edits->has_include, &edits->include, &edits->has_exclude, &edits->exclude);
}

/* --- filters --- */

int stages_take_filter(struct reader *r, struct component *c)
{
	static const char *const conditions[] = { "profiles.profile", "profiles.profile_conditions", "profile_conditions",
						  "error_mode" };
	struct stage_filter *f = &c->filter;
	int err;

	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		if (component_at(c, conditions[i]))
			return pipeline_refuse(
				r, component_at(c, conditions[i]),
				"'%s' is for conditions in OTTL, which hearth does not read; give 'profiles.include' or "
				"'profiles.exclude' with a 'match_type' and 'resource_attributes'",
				conditions[i]);
	c->stage = STAGE_FILTER;
	err = take_matches(r, c, "profiles.", &f->has_include, &f->include, &f->has_exclude, &f->exclude);
	if (!err && !f->has_include && !f->has_exclude)
		err = pipeline_note(r, c->node,
				    "'%s' keeps nothing back: it has neither 'profiles.include' nor 'profiles.exclude'",
				    c->name);
	return err;
}

/* --- limits --- */

int stages_take_limit(struct reader *r, struct component *c)
{
	enum { MIB = 1 << 20, MAX_MIB = 1 << 30 };
	struct stage_limit *l = &c->limit;
	uint64_t mib, spike;
	int err = component_duration(r, c, "check_interval", 0, &l->check_interval_ns);

	c->stage = STAGE_LIMIT;
	if (!err)
		err = component_u64(r, c, "limit_mib", 0, &mib);
	if (!err)
		err = component_u64(r, c, "spike_limit_mib", mib / 5, &spike);
	if (!err)
		err = component_u64(r, c, "limit_percentage", 0, &l->limit_percent);
	if (!err)
		err = component_u64(r, c, "spike_limit_percentage", l->limit_percent / 5, &l->spike_percent);
	if (err)
		return err;
	if (!l->check_interval_ns)
		return pipeline_refuse(r, c->node, "'memory_limiter' has a 'check_interval' such as 1s");
	if (!mib && !l->limit_percent)
		return pipeline_refuse(r, c->node, "'memory_limiter' has a 'limit_mib' or a 'limit_percentage'");
	if (mib > MAX_MIB || l->limit_percent > 100 || (mib ? spike >= mib : l->spike_percent >= l->limit_percent))
		return pipeline_refuse(r, c->node,
				       "the limits of 'memory_limiter': a spike is less than the limit, a part at most 100");
	l->limit_bytes = mib * MIB;
	l->spike_bytes = spike * MIB;
	return 0;
}

/* --- resource detection --- */

static int find_detector(struct reader *r, const struct tree *at, const char *word, const char **ret)
{
	struct nearest nearest = nearest_to(word);

	for (size_t i = 0; stage_detectors[i]; i++) {
		nearest_offer(&nearest, stage_detectors[i]);
		if (!strcmp(stage_detectors[i], word)) {
			*ret = stage_detectors[i];
			return 0;
		}
	}
	return pipeline_refuse(r, at, "hearth has no detector '%s'%s%s%s", word, nearest.best ? "; did you mean '" : "",
			       nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

int stages_take_detect(struct reader *r, struct component *c)
{
	AUTO_FREE const char **words = NULL;
	struct stage_detect *d = &c->detect;
	size_t count;
	bool overrides = true;
	int err = component_texts(r, c, "detectors", &words, &count);

	c->stage = STAGE_DETECT;
	if (!err && count > DETECTORS_MAX)
		return pipeline_refuse(r, component_at(c, "detectors"), "these are more detectors than there are");
	for (size_t i = 0; i < count && !err; i++)
		err = find_detector(r, component_at(c, "detectors"), words[i], &d->detectors[i]);
	if (!err && !count)
		d->detectors[0] = "env";
	if (!err)
		err = component_duration(r, c, "timeout", NSEC_PER_SEC, &d->timeout_ns);
	if (!err)
		err = component_bool(r, c, "override", true, &overrides);
	if (!err)
		err = kube_attributes_take_auth(r, c, "kubeadm.auth_type");
	d->keeps = !overrides;
	return err;
}
