/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/known/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "base/text/pattern.h"

const char *const enrich_key_names[ENRICH_KEY_COUNT] = {
#define ENRICH_KEY_NAME(word, name, usual) [ENRICH_##word] = (name),
	ENRICH_KEYS(ENRICH_KEY_NAME)
};

static const bool usual_keys[ENRICH_KEY_COUNT] = {
#define ENRICH_KEY_USUAL(word, name, usual) [ENRICH_##word] = (usual),
	ENRICH_KEYS(ENRICH_KEY_USUAL)
};

/* The names that a label has as an attribute where its rule gives none, as the Collector has them. */
static const char *const prefixes[] = {
	[RULE_POD_LABEL] = "k8s.pod.labels.",
	[RULE_POD_ANNOTATION] = "k8s.pod.annotations.",
	[RULE_NAMESPACE_LABEL] = "k8s.namespace.labels.",
	[RULE_NAMESPACE_ANNOTATION] = "k8s.namespace.annotations.",
};

struct rule {
	enum rule_source source;
	char *attribute; /* owned; NULL: the prefix and the key */
	char *key;	 /* owned; NULL: by pattern */
	struct pattern *pattern;
};

struct rules {
	bool told[ENRICH_KEY_COUNT];
	bool service_labels, namespaces;
	struct rule *items;
	size_t count;
};

void rules_free(struct rules *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++) {
		free(r->items[i].attribute);
		free(r->items[i].key);
		pattern_free(r->items[i].pattern);
	}
	free(r->items);
	free(r);
}

/* --- reading what the user wrote --- */

#define ALWAYS_TOLD "container.id" /* by the control group: pods are found by it */

static int choose_key(struct rules *r, const char *word, struct buf *error)
{
	bool is_wanted = word[0] != '-';
	const char *name = is_wanted ? word : word + 1;
	struct nearest nearest = nearest_to(name);
	bool is_all = !strcmp(name, "all"), is_found = is_all || !strcmp(name, ALWAYS_TOLD);

	for (size_t i = 0; i < ENRICH_KEY_COUNT; i++) {
		if (is_all || !strcmp(enrich_key_names[i], name)) {
			r->told[i] = is_wanted;
			is_found = true;
		}
		nearest_offer(&nearest, enrich_key_names[i]);
	}
	if (is_found)
		return 0;
	buf_printf(error, "there is no attribute '%s'", name);
	if (nearest.best)
		buf_printf(error, "; did you mean %s?", nearest.best);
	return -EINVAL;
}

static int choose_keys(struct rules *r, const struct rules_config *config, struct buf *error)
{
	int err = 0;

	/* A list that begins by leaving one out goes from the usual ones. */
	if (!config->key_count || config->keys[0][0] == '-')
		memcpy(r->told, usual_keys, sizeof(r->told));
	for (size_t i = 0; i < config->key_count && !err; i++)
		err = choose_key(r, config->keys[i], error);
	return err;
}

static int add_pattern(struct rule *rule, const char *key, size_t len, struct buf *error)
{
	AUTO_FREE char *expression = strndup(key + 1, len - 2);
	struct pattern_error problem;
	int err = expression ? pattern_new(expression, PATTERN_WHOLE, &rule->pattern, &problem) : -ENOMEM;

	if (err == -EINVAL)
		buf_printf(error, "'%s': %s", key, problem.message);
	return err;
}

static int add_rule(struct rules *r, const char *text, bool is_annotation, struct buf *error)
{
	struct rule *rule = &r->items[r->count];
	const char *equals = text[0] == '/' ? NULL : strchr(text, '='), *key = equals ? equals + 1 : text;
	bool is_namespace = !strncmp(key, "namespace:", 10);
	size_t len;

	key += is_namespace ? 10 : !strncmp(key, "pod:", 4) ? 4 : 0;
	len = strlen(key);
	if (!len || equals == text || (key[0] == '/' && (len < 3 || key[len - 1] != '/'))) {
		buf_printf(error, "'%s' is not [ATTRIBUTE=][namespace:]KEY with a name or /PATTERN/ as KEY", text);
		return -EINVAL;
	}
	*rule = (struct rule){ .source = is_namespace ? (is_annotation ? RULE_NAMESPACE_ANNOTATION : RULE_NAMESPACE_LABEL)
						      : (is_annotation ? RULE_POD_ANNOTATION : RULE_POD_LABEL) };
	r->count++;
	r->namespaces |= is_namespace;
	rule->attribute = equals ? strndup(text, (size_t)(equals - text)) : NULL;
	if (equals && !rule->attribute)
		return -ENOMEM;
	if (key[0] == '/')
		return add_pattern(rule, key, len, error);
	rule->key = strdup(key);
	return rule->key ? 0 : -ENOMEM;
}

int rules_new(const struct rules_config *config, struct rules **ret, struct buf *error)
{
	struct rules *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->service_labels = config->service_labels;
	r->items = calloc(config->label_count + config->annotation_count + 1, sizeof(*r->items));
	err = r->items ? choose_keys(r, config, error) : -ENOMEM;
	for (size_t i = 0; i < config->label_count && !err; i++)
		err = add_rule(r, config->labels[i], false, error);
	for (size_t i = 0; i < config->annotation_count && !err; i++)
		err = add_rule(r, config->annotations[i], true, error);
	if (err) {
		rules_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

/* --- using it --- */

bool rules_tell(const struct rules *r, enum enrich_key key)
{
	return r->told[key];
}

bool rules_use_service_labels(const struct rules *r)
{
	return r->service_labels;
}

bool rules_want_namespaces(const struct rules *r)
{
	return r->namespaces;
}

static bool rule_fits(const struct rule *rule, const char *key, size_t len)
{
	if (rule->pattern)
		return pattern_matches(rule->pattern, key, len);
	return strlen(rule->key) == len && !memcmp(rule->key, key, len);
}

static bool is_same_attribute(const struct rule *a, const struct rule *b)
{
	return a->attribute && b->attribute ? !strcmp(a->attribute, b->attribute) : a->attribute == b->attribute;
}

/* Has a rule before @end already made the attribute of the rule there? */
static bool is_made(const struct rules *r, size_t end, const char *key, size_t len)
{
	for (size_t i = 0; i < end; i++)
		if (r->items[i].source == r->items[end].source && is_same_attribute(&r->items[i], &r->items[end]) &&
		    rule_fits(&r->items[i], key, len))
			return true;
	return false;
}

bool rules_attribute(struct rules *r, enum rule_source source, const char *key, size_t len, size_t *at, struct buf *out)
{
	while (*at < r->count) {
		size_t i = (*at)++;
		const struct rule *rule = &r->items[i];

		if (rule->source != source || !rule_fits(rule, key, len) || is_made(r, i, key, len))
			continue;
		buf_reset(out);
		buf_puts(out, rule->attribute ? rule->attribute : prefixes[source]);
		if (!rule->attribute)
			buf_append(out, key, len);
		return !out->failed;
	}
	return false;
}
