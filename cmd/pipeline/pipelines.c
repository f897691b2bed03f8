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

/* A component that is in a pipeline of a signal that it does not know. */
static int check_signal(struct reader *r, const struct component *c, const struct tree *at, bool is_of_metrics)
{
	if (is_of_metrics && !c->type->has_metrics)
		return pipeline_refuse(r, at,
				       c->type->class == CLASS_RECEIVER ? "'%s' tells no metrics of the host"
				       : c->type->class == CLASS_EXPORTER
					       ? "'%s' takes no metrics; otlp, otlphttp, debug and nop do"
					       : "'%s' changes no metrics here; resource and resourcedetection do",
				       c->name);
	if (!is_of_metrics && c->type == &host_metrics_type)
		return pipeline_refuse(r, at, "'%s' tells metrics, which are no profiles: give it a pipeline 'metrics'",
				       c->name);
	return 0;
}

static int use(struct reader *r, struct component *c, const struct tree *at)
{
	c->is_used = true;
	return c->type->refusal ? pipeline_refuse(r, at, "'%s' %s", c->name, c->type->refusal) : 0;
}

/* --- service --- */

static bool is_called(const struct component *c, enum component_class class, const char *name)
{
	return c->type->class == class && !strcmp(c->type->names[0], name);
}

/* What has no effect in a pipeline of metrics: a note, and then whether the component stays out of it. */
static int note_metrics(struct reader *r, const struct component *c, const struct tree *at, const char *pipeline,
			bool *stays_out)
{
	*stays_out = is_called(c, CLASS_RECEIVER, "otlp");
	if (*stays_out)
		return pipeline_note(
			r, at,
			"'%s' is left out of '%s': metrics that come in go where a pipeline of profiles that names "
			"it goes",
			c->name, pipeline);
	if (is_called(c, CLASS_PROCESSOR, "k8sattributes"))
		return pipeline_note(r, at, "'%s' has no effect in '%s': the host's metrics are of no pod", c->name,
				     pipeline);
	return 0;
}

static int add_name(struct reader *r, const struct tree *at, const struct pipeline *pl, struct component *c,
		    struct component **list, size_t *count)
{
	bool stays_out = false;
	int err;

	for (size_t k = 0; k < *count; k++)
		if (list[k] == c)
			return pipeline_refuse(r, at, "'%s' stands here twice", c->name);
	err = pl->is_of_metrics ? note_metrics(r, c, at, pl->name, &stays_out) : 0;
	if (err || stays_out)
		return err;
	err = check_signal(r, c, at, pl->is_of_metrics);
	if (err)
		return err;
	list[(*count)++] = c;
	c->has_metrics |= pl->is_of_metrics;
	return use(r, c, at);
}

static int take_names(struct reader *r, const struct tree *pipeline, const struct pipeline *pl, enum component_class class,
		      struct component ***ret, size_t *count)
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

		err = c ? add_name(r, &list->items[i], pl, c, *ret, count) : -EINVAL;
	}
	if (!err && !*count && class != CLASS_PROCESSOR)
		return pipeline_refuse(r, list ? list : pipeline, "the pipeline '%s' has no %s", pipeline->key,
				       sections[class]);
	return err;
}

static int take_pipeline(struct reader *r, const struct tree *t, bool is_of_metrics)
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
	*pl = (struct pipeline){ .name = t->key, .is_of_metrics = is_of_metrics };
	err = take_names(r, t, pl, CLASS_RECEIVER, &pl->receivers, &pl->receiver_count);
	if (!err)
		err = take_names(r, t, pl, CLASS_PROCESSOR, &pl->processors, &pl->processor_count);
	return err ? err : take_names(r, t, pl, CLASS_EXPORTER, &pl->exporters, &pl->exporter_count);
}

/* Whether a receiver of the pipeline @t tells metrics of the host. */
static bool has_host_metrics(const struct reader *r, const struct tree *t)
{
	const struct tree *names = tree_find(t, sections[CLASS_RECEIVER]);
	const struct component_list *list = &r->pipelines->lists[CLASS_RECEIVER];

	for (size_t i = 0; names && names->kind == TREE_LIST && i < names->count; i++)
		for (size_t k = 0; k < list->count && names->items[i].kind == TREE_TEXT; k++)
			if (list->items[k]->type == &host_metrics_type &&
			    !strcmp(list->items[k]->name, names->items[i].text))
				return true;
	return false;
}

static bool is_named(const struct tree *t, const char *signal)
{
	const size_t len = strcspn(t->key, "/");

	return strlen(signal) == len && !memcmp(t->key, signal, len);
}

static int take_signal(struct reader *r, const struct tree *t)
{
	const bool is_metrics = is_named(t, "metrics");

	if (is_named(t, "profiles") || (is_metrics && has_host_metrics(r, t)))
		return take_pipeline(r, t, is_metrics);
	if (is_metrics)
		return pipeline_note(
			r, t,
			"the pipeline '%s' is left out: hearth's pipelines are of profiles, and of metrics that "
			"'hostmetrics' tells",
			t->key);
	if (is_named(t, "traces") || is_named(t, "logs"))
		return pipeline_note(r, t, "the pipeline '%s' is left out: hearth's pipelines are of profiles", t->key);
	return pipeline_refuse(r, t, "'%s' is no pipeline; there are profiles and profiles/NAME", t->key);
}

static int take_pipelines(struct reader *r, const struct tree *service)
{
	const struct tree *list = tree_find(service, "pipelines");
	int err = 0;

	for (size_t i = 0; list && list->kind == TREE_MAP && i < list->count && !err; i++)
		err = take_signal(r, &list->items[i]);
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
		bool is_single = class == CLASS_RECEIVER ? c->source == SOURCE_AGENT || c->source == SOURCE_OTLP
							 : c->type->is_server;

		for (size_t k = 0; k < i && c->is_used && is_single; k++)
			if (list->items[k]->is_used && list->items[k]->type == c->type)
				return pipeline_refuse(r, c->node, "'%s' and '%s': there is one such %s in a process",
						       list->items[k]->name, c->name,
						       class == CLASS_RECEIVER ? "receiver" : "exporter");
	}
	return 0;
}

/* Who confines a process says once where the host is. */
static int check_roots(struct reader *r)
{
	const struct component_list *list = &r->pipelines->lists[CLASS_RECEIVER];
	const struct component *first = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct component *c = list->items[i];

		if (!c->is_used || c->source != SOURCE_HOST)
			continue;
		first = first ? first : c;
		if (strcmp(c->host.root, first->host.root) != 0)
			return pipeline_refuse(r, c->node, "'%s' and '%s' have another 'root_path' each; there is one host",
					       first->name, c->name);
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
		err = check_roots(&r);
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
	host_config_fini(&c->host);
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
