/* SPDX-License-Identifier: Apache-2.0 */
/* From the document to components, from names in service.pipelines to what they name, and what the whole means to the
 * process. */
#include "cmd/pipeline/pipelines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "base/vec.h"
#include "cmd/pipeline/component.h"

static const char *const sections[COMPONENT_CLASSES] = { [CLASS_RECEIVER] = "receivers",
							 [CLASS_PROCESSOR] = "processors",
							 [CLASS_EXPORTER] = "exporters",
							 [CLASS_EXTENSION] = "extensions" };

static const struct component_type *const *const types[COMPONENT_CLASSES] = { [CLASS_RECEIVER] = receiver_types,
									      [CLASS_PROCESSOR] = processor_types,
									      [CLASS_EXPORTER] = exporter_types,
									      [CLASS_EXTENSION] = extension_types };

struct component_list {
	struct component **items; /* each owned: pipelines point to them */
	size_t count, cap;
};

struct pipelines {
	const struct tree *root;
	struct component_list lists[COMPONENT_CLASSES];
	struct pipeline *items;
	size_t count, cap;
	struct tree settings; /* of the process: a map of options */
	char **notes;
	size_t note_count, note_cap;
	bool is_muted; /* notes are of no interest */
};

/* --- notes --- */

int pipeline_note(struct reader *r, const struct tree *at, const char *fmt, ...)
{
	struct pipelines *p = r->pipelines;
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	char text[1024];
	va_list ap;

	if (p->is_muted)
		return 0;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_place(at, &line);
	buf_puts(&line, text);
	buf_putc(&line, '\0');
	if (line.failed || vec_reach(&p->notes, &p->note_cap, p->note_count))
		return -ENOMEM;
	p->notes[p->note_count++] = (char *)buf_take(&line, NULL);
	return 0;
}

void pipelines_notes(const struct pipelines *p, void (*fn)(void *arg, const char *note), void *arg)
{
	for (size_t i = 0; i < p->note_count; i++)
		fn(arg, p->notes[i]);
}

/* --- components --- */

bool pipelines_are_in(const struct tree *root)
{
	bool yes = tree_find(root, "service");

	for (size_t i = 0; i < COMPONENT_CLASSES; i++)
		yes |= tree_find(root, sections[i]) != NULL;
	return yes;
}

static bool has_name(const struct component_type *type, const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(type->names) && type->names[i]; i++)
		if (strlen(type->names[i]) == len && !memcmp(type->names[i], name, len))
			return true;
	return false;
}

static int refuse_type(struct reader *r, const struct tree *t, enum component_class class, const char *word)
{
	struct nearest nearest = nearest_to(word);
	AUTO(buf_fini) struct buf all = BUF_EMPTY;

	for (const struct component_type *const *type = types[class]; *type; type++) {
		for (size_t i = 0; i < ARRAY_LEN((*type)->names) && (*type)->names[i]; i++)
			nearest_offer(&nearest, (*type)->names[i]);
		buf_printf(&all, "%s%s", all.len ? ", " : "", (*type)->names[0]);
	}
	if (nearest.best)
		return pipeline_refuse(r, t, "'%s' is none of hearth's %s; did you mean '%s'?", word, sections[class],
				       nearest.best);
	return pipeline_refuse(r, t, "'%s' is none of hearth's %s; there are %s", word, sections[class], buf_text(&all));
}

static int add_component(struct reader *r, enum component_class class, const struct tree *t)
{
	struct component_list *list = &r->pipelines->lists[class];
	size_t len = strcspn(t->key, "/");
	AUTO_FREE char *word = strndup(t->key, len);
	const struct component_type *const *type = types[class];
	struct component *c;

	while (*type && !has_name(*type, t->key, len))
		type++;
	if (!word)
		return -ENOMEM;
	if (!*type)
		return refuse_type(r, t, class, word);
	if (t->key[len] && !t->key[len + 1])
		return pipeline_refuse(r, t, "'%s' has no name behind its slash", t->key);
	if (vec_reach(&list->items, &list->cap, list->count))
		return -ENOMEM;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct component){ .name = t->key, .type = *type, .node = t };
	list->items[list->count++] = c;
	return 0;
}

static int add_components(struct reader *r)
{
	int err = 0;

	for (size_t class = 0; class < COMPONENT_CLASSES && !err; class ++) {
		const struct tree *t = tree_find(r->pipelines->root, sections[class]);

		if (t && t->kind != TREE_MAP && t->kind != TREE_NULL)
			return pipeline_refuse(r, t, "'%s' is a map of components", sections[class]);
		for (size_t i = 0; t && i < t->count && !err; i++)
			err = add_component(r, (enum component_class) class, &t->items[i]);
	}
	return err;
}

/* What @name stands for in @class; NULL with an error where it is nothing. */
static struct component *find_component(struct reader *r, enum component_class class, const struct tree *name)
{
	const struct component_list *list = &r->pipelines->lists[class];
	struct nearest nearest = nearest_to(name->kind == TREE_TEXT ? name->text : "");

	for (size_t i = 0; name->kind == TREE_TEXT && i < list->count; i++) {
		nearest_offer(&nearest, list->items[i]->name);
		if (!strcmp(list->items[i]->name, name->text))
			return list->items[i];
	}
	if (name->kind != TREE_TEXT)
		pipeline_refuse(r, name, "this is the name of a component");
	else if (nearest.best)
		pipeline_refuse(r, name, "'%s' is not among the %s above; did you mean '%s'?", name->text, sections[class],
				nearest.best);
	else
		pipeline_refuse(r, name, "'%s' is not among the %s above", name->text, sections[class]);
	return NULL;
}

static int use(struct reader *r, struct component *c, const struct tree *at)
{
	c->is_used = true;
	return c->type->refusal ? pipeline_refuse(r, at, "'%s' %s", c->name, c->type->refusal) : 0;
}

/* --- service --- */

static int take_names(struct reader *r, const struct tree *pipeline, enum component_class class, struct component ***ret,
		      size_t *count)
{
	const struct tree *list = tree_find(pipeline, sections[class]);
	int err = 0;

	*count = 0;
	*ret = calloc(list && list->count ? list->count : 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	if (list && list->kind != TREE_LIST && list->kind != TREE_NULL)
		return pipeline_refuse(r, list, "'%s' is a list of names", sections[class]);
	for (size_t i = 0; list && i < list->count && !err; i++) {
		struct component *c = find_component(r, class, &list->items[i]);

		if (!c)
			return -EINVAL;
		for (size_t k = 0; k < *count; k++)
			if ((*ret)[k] == c)
				return pipeline_refuse(r, &list->items[i], "'%s' stands here twice", c->name);
		(*ret)[(*count)++] = c;
		err = use(r, c, &list->items[i]);
	}
	if (!err && !*count && class != CLASS_PROCESSOR)
		return pipeline_refuse(r, list ? list : pipeline, "the pipeline '%s' has no %s", pipeline->key,
				       sections[class]);
	return err;
}

static int take_pipeline(struct reader *r, const struct tree *t)
{
	static const struct component_key keys[] = {
		{ "receivers", NULL, NULL }, { "processors", NULL, NULL }, { "exporters", NULL, NULL }, { NULL, NULL, NULL }
	};
	struct pipelines *p = r->pipelines;
	struct tree none = TREE_EMPTY;
	struct pipeline *pl;
	int err = component_read_keys(r, t, t->key, keys, &none);

	tree_fini(&none);
	if (err)
		return err;
	if (vec_reach(&p->items, &p->cap, p->count))
		return -ENOMEM;
	pl = &p->items[p->count++];
	*pl = (struct pipeline){ .name = t->key };
	err = take_names(r, t, CLASS_RECEIVER, &pl->receivers, &pl->receiver_count);
	if (!err)
		err = take_names(r, t, CLASS_PROCESSOR, &pl->processors, &pl->processor_count);
	return err ? err : take_names(r, t, CLASS_EXPORTER, &pl->exporters, &pl->exporter_count);
}

static int take_pipelines(struct reader *r, const struct tree *service)
{
	static const char *const others[] = { "traces", "metrics", "logs" };
	const struct tree *list = tree_find(service, "pipelines");
	int err = 0;

	for (size_t i = 0; list && list->kind == TREE_MAP && i < list->count && !err; i++) {
		const struct tree *t = &list->items[i];
		size_t len = strcspn(t->key, "/");
		bool is_other = false;

		for (size_t k = 0; k < ARRAY_LEN(others); k++)
			is_other |= strlen(others[k]) == len && !memcmp(others[k], t->key, len);
		if (len == strlen("profiles") && !memcmp(t->key, "profiles", len))
			err = take_pipeline(r, t);
		else if (is_other)
			err = pipeline_note(r, t, "the pipeline '%s' is left out: hearth's pipelines are of profiles",
					    t->key);
		else
			err = pipeline_refuse(r, t, "'%s' is no pipeline; there are profiles and profiles/NAME", t->key);
	}
	if (!err && !r->pipelines->count)
		return pipeline_refuse(r, list ? list : service,
				       "there is no pipeline of profiles: service.pipelines.profiles has 'receivers' "
				       "and 'exporters'");
	return err;
}

static int take_extensions(struct reader *r, const struct tree *service)
{
	const struct tree *list = tree_find(service, "extensions");
	int err = 0;

	if (list && list->kind != TREE_LIST && list->kind != TREE_NULL)
		return pipeline_refuse(r, list, "'extensions' is a list of names");
	for (size_t i = 0; list && i < list->count && !err; i++) {
		struct component *c = find_component(r, CLASS_EXTENSION, &list->items[i]);

		err = c ? use(r, c, &list->items[i]) : -EINVAL;
	}
	return err;
}

static int take_service(struct reader *r)
{
	static const struct component_key keys[] = {
		{ "pipelines", NULL, NULL }, { "extensions", NULL, NULL }, { "telemetry", NULL, NULL }, { NULL, NULL, NULL }
	};
	const struct tree *root = r->pipelines->root, *service = tree_find(root, "service");
	struct tree none = TREE_EMPTY;
	int err;

	if (!service)
		return pipeline_refuse(r, root, "there is no 'service' with 'pipelines'");
	err = component_read_keys(r, service, "service", keys, &none);
	tree_fini(&none);
	if (!err)
		err = take_extensions(r, service);
	return err ? err : take_pipelines(r, service);
}

static int check_root(struct reader *r)
{
	static const struct component_key keys[] = {
		{ "receivers", NULL, NULL },  { "processors", NULL, NULL }, { "exporters", NULL, NULL },
		{ "extensions", NULL, NULL }, { "service", NULL, NULL },    { "connectors", NULL, NULL },
		{ NULL, NULL, NULL },
	};
	const struct tree *connectors = tree_find(r->pipelines->root, "connectors");
	struct tree none = TREE_EMPTY;
	int err = component_read_keys(r, r->pipelines->root, "a file with pipelines", keys, &none);

	tree_fini(&none);
	if (!err && connectors && connectors->count)
		return pipeline_refuse(r, connectors, "hearth has no connectors: a pipeline's profiles go to exporters");
	return err;
}

/* --- what it all means --- */

static int read_components(struct reader *r)
{
	int err = 0;

	for (size_t class = 0; class < COMPONENT_CLASSES && !err; class ++) {
		struct component_list *list = &r->pipelines->lists[class];

		for (size_t i = 0; i < list->count && !err; i++) {
			struct component *c = list->items[i];

			if (c->is_used && c->type->note)
				err = pipeline_note(r, c->node, "'%s' %s", c->name, c->type->note);
			r->pipelines->is_muted = !c->is_used;
			if (!err)
				err = component_read(r, c);
			r->pipelines->is_muted = false;
			if (!err && !c->is_used)
				err = pipeline_note(r, c->node, "'%s' of %s is not used", c->name, sections[class]);
		}
	}
	return err;
}

/* There is one agent a process, and one receiver of OTLP. */
static int check_sources(struct reader *r)
{
	const struct component_list *list = &r->pipelines->lists[CLASS_RECEIVER];
	const struct component *first[SOURCE_MADE_UP + 1] = { NULL };

	for (size_t i = 0; i < list->count; i++) {
		const struct component *c = list->items[i], *other = first[c->source];

		if (!c->is_used || c->source == SOURCE_MADE_UP)
			continue;
		if (other && other->type == c->type)
			return pipeline_refuse(r, c->node, "'%s' and '%s': there is one such receiver in a process",
					       other->name, c->name);
		first[c->source] = c;
		if (first[SOURCE_AGENT] && first[SOURCE_OTLP])
			return pipeline_refuse(
				r, c->node,
				"'%s' and '%s' in one process: what samples is root and hears no network; let "
				"'hearth run' send to a "
				"'hearth serve' beside it",
				first[SOURCE_AGENT]->name, first[SOURCE_OTLP]->name);
	}
	return 0;
}

static int add_settings(struct reader *r, const struct component *c)
{
	struct tree *all = &r->pipelines->settings;
	int err = 0;

	for (size_t i = 0; i < c->settings.count && !err; i++) {
		const struct tree *t = &c->settings.items[i];

		if (t->kind == TREE_TEXT)
			err = component_add(all, t, t->key, t->text);
		for (size_t k = 0; t->kind == TREE_LIST && k < t->count && !err; k++)
			err = component_add(all, &t->items[k], t->key, t->items[k].text);
	}
	return err;
}

/* Probes alone are what --event asks for; a `profiling` receiver samples the CPUs as well. */
static int add_clock(struct reader *r)
{
	const struct tree *events = tree_find(&r->pipelines->settings, "event");
	const struct component_list *list = &r->pipelines->lists[CLASS_RECEIVER];

	for (size_t i = 0; events && i < list->count; i++) {
		const struct component *c = list->items[i];

		if (c->is_used && c->source == SOURCE_AGENT && !tree_find(&c->settings, "event"))
			return component_add(&r->pipelines->settings, c->node, "event", "cpu-clock");
	}
	return 0;
}

static int take_settings(struct reader *r)
{
	const struct tree *telemetry = tree_at(r->pipelines->root, "service.telemetry");
	int err = 0;

	for (size_t class = 0; class < COMPONENT_CLASSES && !err; class ++) {
		const struct component_list *list = &r->pipelines->lists[class];

		for (size_t i = 0; i < list->count && !err; i++)
			if (list->items[i]->is_used && (class == CLASS_RECEIVER || class == CLASS_EXTENSION))
				err = add_settings(r, list->items[i]);
	}
	if (!err)
		err = add_clock(r);
	return err || !telemetry ? err : extensions_read_telemetry(r, telemetry, &r->pipelines->settings);
}

int pipelines_new(const struct tree *root, struct pipelines **ret, struct buf *error)
{
	struct pipelines *p = calloc(1, sizeof(*p));
	struct reader r = { .pipelines = p, .error = error };
	int err;

	if (!p)
		return -ENOMEM;
	p->root = root;
	err = check_root(&r);
	if (!err)
		err = add_components(&r);
	if (!err)
		err = take_service(&r);
	if (!err)
		err = read_components(&r);
	if (!err)
		err = check_sources(&r);
	if (!err)
		err = take_settings(&r);
	if (err)
		pipelines_free(p);
	else
		*ret = p;
	return err;
}

static void component_free(struct component *c)
{
	tree_fini(&c->settings);
	stage_edits_fini(&c->edits);
	stage_filter_fini(&c->filter);
	free(c->sink);
	free(c);
}

void pipelines_free(struct pipelines *p)
{
	if (!p)
		return;
	for (size_t class = 0; class < COMPONENT_CLASSES; class ++) {
		for (size_t i = 0; i < p->lists[class].count; i++)
			component_free(p->lists[class].items[i]);
		free(p->lists[class].items);
	}
	for (size_t i = 0; i < p->count; i++) {
		free(p->items[i].receivers);
		free(p->items[i].processors);
		free(p->items[i].exporters);
	}
	free(p->items);
	for (size_t i = 0; i < p->note_count; i++)
		free(p->notes[i]);
	free(p->notes);
	tree_fini(&p->settings);
	free(p);
}

/* --- what others ask --- */

size_t pipelines_setting_count(const struct pipelines *p)
{
	return p->settings.count;
}

const struct tree *pipelines_setting(const struct pipelines *p, size_t i)
{
	return &p->settings.items[i];
}

size_t pipelines_count(const struct pipelines *p)
{
	return p->count;
}

const struct pipeline *pipelines_get(const struct pipelines *p, size_t i)
{
	return &p->items[i];
}

bool pipelines_have_source(const struct pipelines *p, enum source_kind kind)
{
	for (size_t i = 0; i < p->lists[CLASS_RECEIVER].count; i++)
		if (p->lists[CLASS_RECEIVER].items[i]->is_used && p->lists[CLASS_RECEIVER].items[i]->source == kind)
			return true;
	return false;
}

bool pipelines_have_stage(const struct pipelines *p, enum stage_kind kind)
{
	for (size_t i = 0; i < p->lists[CLASS_PROCESSOR].count; i++)
		if (p->lists[CLASS_PROCESSOR].items[i]->is_used && p->lists[CLASS_PROCESSOR].items[i]->stage == kind)
			return true;
	return false;
}

bool pipelines_have_setting(const struct pipelines *p, const char *name)
{
	for (size_t class = CLASS_PROCESSOR; class <= CLASS_EXPORTER; class ++)
		for (size_t i = 0; i < p->lists[class].count; i++)
			if (p->lists[class].items[i]->is_used && tree_find(&p->lists[class].items[i]->settings, name))
				return true;
	return false;
}
