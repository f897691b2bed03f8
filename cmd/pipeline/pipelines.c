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
	bool is_muted;	  /* notes are of no interest */
	struct buf shown; /* what they are, as the file says it */
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

/* There is one agent a process, one receiver of OTLP, and one server of a kind. */
static int check_singles(struct reader *r, enum component_class class)
{
	const struct component_list *list = &r->pipelines->lists[class];

	for (size_t i = 0; i < list->count; i++) {
		const struct component *c = list->items[i];
		bool is_single = class == CLASS_RECEIVER ? c->source != SOURCE_MADE_UP : c->type->is_server;

		for (size_t k = 0; k < i && c->is_used && is_single; k++)
			if (list->items[k]->is_used && list->items[k]->type == c->type)
				return pipeline_refuse(r, c->node, "'%s' and '%s': there is one such %s in a process",
						       list->items[k]->name, c->name,
						       class == CLASS_RECEIVER ? "receiver" : "exporter");
	}
	return 0;
}

/* What samples is root and hears no network; the other half, which does, writes no files but a store's. */
static int check_halves(struct reader *r)
{
	const struct component_list *list = &r->pipelines->lists[CLASS_EXPORTER];

	if (!pipelines_have_source(r->pipelines, SOURCE_AGENT) || !pipelines_have_source(r->pipelines, SOURCE_OTLP))
		return 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->is_used && list->items[i]->writes_files)
			return pipeline_refuse(
				r, list->items[i]->node,
				"'%s' beside receivers that sample and that hear a network: what hears writes no files; let "
				"a 'hearth serve' of its own receive",
				list->items[i]->name);
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

static bool is_process_wide(const struct component *c)
{
	return c->type->class == CLASS_RECEIVER || c->type->class == CLASS_EXTENSION || c->type->is_server;
}

static int take_settings(struct reader *r)
{
	const struct tree *telemetry = tree_at(r->pipelines->root, "service.telemetry");
	int err = 0;

	for (size_t class = 0; class < COMPONENT_CLASSES && !err; class ++) {
		const struct component_list *list = &r->pipelines->lists[class];

		for (size_t i = 0; i < list->count && !err; i++)
			if (list->items[i]->is_used && is_process_wide(list->items[i]))
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
		err = check_singles(&r, CLASS_RECEIVER);
	if (!err)
		err = check_singles(&r, CLASS_EXPORTER);
	if (!err)
		err = check_halves(&r);
	if (!err)
		err = take_settings(&r);
	if (!err) {
		pipelines_write(p, &p->shown);
		err = p->shown.failed ? -ENOMEM : 0;
	}
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
	buf_fini(&p->shown);
	free(p);
}

void pipelines_show(const struct pipelines *p, struct buf *out)
{
	buf_append(out, p->shown.data, p->shown.len);
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

bool pipelines_write_files(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->writes_files)
			return true;
	return false;
}

bool pipelines_write_folders(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->writes_folder)
			return true;
	return false;
}

bool pipelines_have_server(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->type->is_server)
			return true;
	return false;
}

static bool asks_network(const struct component *c)
{
	bool asks = c->stage == STAGE_KUBERNETES;

	for (const char *const *d = c->detect.detectors; c->stage == STAGE_DETECT && *d; d++)
		asks |= strcmp(*d, "env") != 0 && strcmp(*d, "system") != 0;
	return asks;
}

bool pipelines_ask_network(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_PROCESSOR].count; i++)
		if (p->lists[CLASS_PROCESSOR].items[i]->is_used && asks_network(p->lists[CLASS_PROCESSOR].items[i]))
			return true;
	return false;
}

void pipelines_each_text(const struct pipelines *p, const char *name, void (*fn)(void *arg, char **text), void *arg)
{
	for (size_t class = CLASS_PROCESSOR; class <= CLASS_EXPORTER; class ++)
		for (size_t i = 0; i < p->lists[class].count; i++) {
			struct component *c = p->lists[class].items[i];
			struct tree *t = c->is_used ? tree_find(&c->settings, name) : NULL;

			if (t && t->kind == TREE_TEXT)
				fn(arg, &t->text);
		}
}

void pipelines_each_sink(const struct pipelines *p, void (*fn)(void *arg, char **sink), void *arg)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++) {
		struct component *c = p->lists[CLASS_EXPORTER].items[i];

		if (c->is_used && c->sink)
			fn(arg, &c->sink);
	}
}
