/* SPDX-License-Identifier: Apache-2.0 */
#include "sinks/stage/detectors.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "base/io.h"
#include "base/text/json_fields.h"
#include "base/text/tree.h"
#include "base/text/utf8.h"
#include "sinks/stage/stage.h"

enum { ANSWER_MAX_BYTES = 64 << 10 };

void detectors_add(struct facts *f, const char *key, const char *value, size_t len)
{
	struct fact *fact = &f->items[f->count];

	while (len && isspace((unsigned char)value[len - 1]))
		len--;
	if (f->count >= FACTS_MAX || !len || len >= sizeof(fact->value) || strlen(key) >= sizeof(fact->key) ||
	    memchr(value, '\0', len))
		return;
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->items[i].key, key))
			return;
	strcpy(fact->key, key);
	memcpy(fact->value, value, len);
	fact->value[len] = '\0';
	f->count++;
}

static void add_text(struct facts *f, const char *key, const char *value)
{
	detectors_add(f, key, value, strlen(value));
}

/* --- env: OTEL_RESOURCE_ATTRIBUTES=KEY=VALUE,..., percent-encoded --- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static void decode(const char *text, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		int high = i + 2 < len && text[i] == '%' ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		if (low >= 0)
			i += 2;
		buf_putc(out, low >= 0 ? (char)(high * 16 + low) : text[i]);
	}
}

static void run_env(struct facts *f, const struct detector_way *way)
{
	const char *text = getenv("OTEL_RESOURCE_ATTRIBUTES");

	(void)way;
	while (text && *text) {
		size_t len = strcspn(text, ",");
		const char *is = memchr(text, '=', len);
		AUTO(buf_fini) struct buf key = BUF_EMPTY, value = BUF_EMPTY;

		if (is) {
			decode(text, (size_t)(is - text), &key);
			decode(is + 1, len - (size_t)(is + 1 - text), &value);
			detectors_add(f, buf_text(&key), buf_text(&value), value.len);
		}
		text += len + (text[len] != '\0');
	}
}

/* --- system --- */

static const char *arch_of(const char *machine)
{
	return !strcmp(machine, "x86_64") ? "amd64" : !strcmp(machine, "aarch64") ? "arm64" : machine;
}

static void run_system(struct facts *f, const struct detector_way *way)
{
	AUTO(buf_fini) struct buf id = BUF_EMPTY;
	struct utsname uts;

	(void)way;
	if (!uname(&uts)) {
		add_text(f, "host.name", uts.nodename);
		add_text(f, "host.arch", arch_of(uts.machine));
	}
	add_text(f, "os.type", "linux");
	if (!io_read_file("/etc/machine-id", FACT_VALUE_BYTES, &id))
		detectors_add(f, "host.id", buf_text(&id), id.len);
}

/* --- asking --- */

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
	struct buf *out = arg;

	if (out->len + size * count > ANSWER_MAX_BYTES)
		return 0;
	buf_append(out, data, size * count);
	return out->failed ? 0 : size * count;
}

struct question {
	const char *method, *base, *path, *header, *socket;
	uint64_t timeout_ns;
};

/* Whether there was an answer; it is appended to @out. */
static bool ask(const struct question *q, struct buf *out)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = NULL;
	long status = 0;
	bool is_answered;

	if (!curl)
		return false;
	buf_printf(&url, "%s%s", q->base, q->path);
	if (q->header)
		headers = curl_slist_append(NULL, q->header);
	curl_easy_setopt(curl, CURLOPT_URL, buf_text(&url));
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(q->timeout_ns / NSEC_PER_MSEC));
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (q->method)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
	if (q->socket)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, q->socket);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
	is_answered = !curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return is_answered && status == 200 && utf8_is_valid(buf_text(out), out->len);
}

struct member {
	const char *name, *key;
};

struct taking {
	struct facts *facts;
	const struct member *members;
	size_t count;
};

static void take_member(void *arg, struct json_text key, struct json_text value)
{
	struct taking *t = arg;

	for (size_t i = 0; i < t->count; i++)
		if (strlen(t->members[i].name) == key.len && !memcmp(t->members[i].name, key.data, key.len))
			detectors_add(t->facts, t->members[i].key, value.data, value.len);
}

/* The texts of an object that have a name in @members. Whether it is an object. */
static bool take_members(struct facts *f, struct buf *json, const struct member *members, size_t count)
{
	struct taking t = { f, members, count };
	struct json_reader r;
	bool is_read;

	json_reader_init(&r, buf_text(json), json->len);
	is_read = json_read_texts(&r, take_member, &t);
	json_reader_fini(&r);
	return is_read;
}

static const char link_local[] = "http://169.254.169.254";

/* --- docker --- */

static void run_docker(struct facts *f, const struct detector_way *way)
{
	static const struct member members[] = { { "Name", "host.name" }, { "OSType", "os.type" } };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	const struct question q = {
		.base = way->base ? way->base : "http://docker",
		.path = "/info",
		.socket = way->base ? NULL : "/var/run/docker.sock",
		.timeout_ns = way->timeout_ns,
	};

	if (ask(&q, &answer))
		(void)take_members(f, &answer, members, ARRAY_LEN(members));
}

/* --- Amazon: a token first, which is asked for with PUT --- */

/* Whether this is one of their machines, which is then described. */
static bool describe_ec2(struct facts *f, const struct detector_way *way)
{
	static const struct member members[] = {
		{ "accountId", "cloud.account.id" },
		{ "region", "cloud.region" },
		{ "availabilityZone", "cloud.availability_zone" },
		{ "instanceId", "host.id" },
		{ "imageId", "host.image.id" },
		{ "instanceType", "host.type" },
	};
	AUTO(buf_fini) struct buf token = BUF_EMPTY, header = BUF_EMPTY, document = BUF_EMPTY, name = BUF_EMPTY;
	struct question q = {
		.method = "PUT",
		.base = way->base ? way->base : link_local,
		.path = "/latest/api/token",
		.header = "X-aws-ec2-metadata-token-ttl-seconds: 60",
		.timeout_ns = way->timeout_ns,
	};

	if (!ask(&q, &token))
		return false;
	buf_printf(&header, "X-aws-ec2-metadata-token: %s", buf_text(&token));
	q = (struct question){ .base = q.base,
			       .path = "/latest/dynamic/instance-identity/document",
			       .header = buf_text(&header),
			       .timeout_ns = way->timeout_ns };
	if (!ask(&q, &document) || !take_members(f, &document, members, ARRAY_LEN(members)))
		return false;
	q.path = "/latest/meta-data/hostname";
	if (ask(&q, &name))
		detectors_add(f, "host.name", buf_text(&name), name.len);
	return true;
}

static void add_amazon(struct facts *f, const char *platform)
{
	add_text(f, "cloud.provider", "aws");
	add_text(f, "cloud.platform", platform);
}

static void run_ec2(struct facts *f, const struct detector_way *way)
{
	if (describe_ec2(f, way))
		add_amazon(f, "aws_ec2");
}

/* --- Amazon's Kubernetes: told by the server's version; the node is a machine as any, where it may be asked --- */

/* Whether there was an answer; it is appended to @out. */
static bool ask_kubernetes(const struct detector_way *way, const char *path, struct buf *out)
{
	return way->kube.get && !way->kube.get(way->kube.arg, path, way->timeout_ns, out) &&
	       utf8_is_valid(buf_text(out), out->len);
}

static void run_eks(struct facts *f, const struct detector_way *way)
{
	static const struct member members[] = { { "gitVersion", "version" } };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	AUTO_FREE struct facts *said = calloc(1, sizeof(*said));

	if (!said || !ask_kubernetes(way, "/version", &answer) ||
	    !take_members(said, &answer, members, ARRAY_LEN(members)) || !strstr(said->items[0].value, "-eks-"))
		return;
	add_amazon(f, "aws_eks");
	(void)describe_ec2(f, way);
}

/* --- Amazon's containers: the task that hearth itself is in --- */

static const char *value_of(const struct facts *f, const char *key)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->items[i].key, key))
			return f->items[i].value;
	return "";
}

/* "arn:aws:ecs:REGION:ACCOUNT:task/[CLUSTER/]ID"; the cluster comes as such a name, or as the last part of it. */
static void add_task(struct facts *f, const char *arn, const char *cluster)
{
	AUTO(buf_fini) struct buf whole = BUF_EMPTY;
	const char *region = arn, *account, *id = strrchr(arn, '/');
	size_t region_len, account_len;

	for (int i = 0; region && i < 3; i++)
		region = strchr(region, ':') ? strchr(region, ':') + 1 : NULL;
	if (!region || !id)
		return;
	region_len = strcspn(region, ":");
	account = region + region_len + (region[region_len] == ':');
	account_len = strcspn(account, ":");
	detectors_add(f, "cloud.region", region, region_len);
	detectors_add(f, "cloud.account.id", account, account_len);
	add_text(f, "aws.ecs.task.arn", arn);
	add_text(f, "aws.ecs.task.id", id + 1);
	if (!*cluster)
		return;
	if (!strchr(cluster, ':'))
		buf_printf(&whole, "arn:aws:ecs:%.*s:%.*s:cluster/", (int)region_len, region, (int)account_len, account);
	buf_puts(&whole, cluster);
	detectors_add(f, "aws.ecs.cluster.arn", buf_text(&whole), whole.len);
}

static void run_ecs(struct facts *f, const struct detector_way *way)
{
	static const struct member members[] = {
		{ "TaskARN", "TaskARN" },
		{ "Cluster", "Cluster" },
		{ "LaunchType", "LaunchType" },
		{ "Family", "aws.ecs.task.family" },
		{ "Revision", "aws.ecs.task.revision" },
		{ "AvailabilityZone", "cloud.availability_zone" },
	};
	const char *v4 = getenv("ECS_CONTAINER_METADATA_URI_V4"), *uri = v4 ? v4 : getenv("ECS_CONTAINER_METADATA_URI");
	const struct question q = { .base = uri, .path = "/task", .timeout_ns = way->timeout_ns };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	AUTO_FREE struct facts *said = calloc(1, sizeof(*said));
	const char *type;

	if (!said || !uri || !ask(&q, &answer) || !take_members(said, &answer, members, ARRAY_LEN(members)) || !said->count)
		return;
	add_amazon(f, "aws_ecs");
	for (size_t i = 3; i < ARRAY_LEN(members); i++)
		add_text(f, members[i].key, value_of(said, members[i].key));
	add_task(f, value_of(said, "TaskARN"), value_of(said, "Cluster"));
	type = value_of(said, "LaunchType");
	if (!strcasecmp(type, "ec2") || !strcasecmp(type, "fargate"))
		add_text(f, "aws.ecs.launchtype", strcasecmp(type, "ec2") ? "fargate" : "ec2");
}

/* --- kubeadm: the cluster's name is in a text of YAML in an object, or beside it --- */

static bool is_key(struct json_text key, const char *name)
{
	return strlen(name) == key.len && !memcmp(name, key.data, key.len);
}

static void take_cluster(void *arg, struct json_text key, struct json_text value)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(tree_fini) struct tree tree = TREE_EMPTY;
	const struct tree *name;

	if (is_key(key, "clusterName"))
		detectors_add(arg, "k8s.cluster.name", value.data, value.len);
	if (!is_key(key, "ClusterConfiguration") || tree_parse("kubeadm-config", value.data, value.len, &tree, &error))
		return;
	name = tree_find(&tree, "clusterName");
	if (name && name->kind == TREE_TEXT)
		add_text(arg, "k8s.cluster.name", name->text);
}

static void take_uid(void *arg, struct json_text key, struct json_text value)
{
	if (is_key(key, "uid"))
		detectors_add(arg, "k8s.cluster.uid", value.data, value.len);
}

static bool read_data(struct json_reader *r, void *arg)
{
	return json_read_texts(r, take_cluster, arg);
}

static bool read_metadata(struct json_reader *r, void *arg)
{
	return json_read_texts(r, take_uid, arg);
}

static void take_object(struct facts *f, const struct detector_way *way, const char *path, const struct json_field *field)
{
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct json_reader r;

	if (!ask_kubernetes(way, path, &answer))
		return;
	json_reader_init(&r, buf_text(&answer), answer.len);
	(void)json_read_fields(&r, field, 1, f);
	json_reader_fini(&r);
}

static void run_kubeadm(struct facts *f, const struct detector_way *way)
{
	take_object(f, way, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config",
		    &(const struct json_field){ "data", read_data });
	take_object(f, way, "/api/v1/namespaces/kube-system", &(const struct json_field){ "metadata", read_metadata });
}

/* --- Google: a text a question; zone and machine type come with a path in front --- */

static void run_gcp(struct facts *f, const struct detector_way *way)
{
	static const struct member questions[] = {
		{ "project/project-id", "cloud.account.id" },
		{ "instance/id", "host.id" },
		{ "instance/name", "host.name" },
		{ "instance/zone", "cloud.availability_zone" },
		{ "instance/machine-type", "host.type" },
		{ "instance/attributes/cluster-name", "k8s.cluster.name" },
	};

	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		AUTO(buf_fini) struct buf path = BUF_EMPTY, answer = BUF_EMPTY;
		struct question q = { .base = way->base ? way->base : link_local,
				      .header = "Metadata-Flavor: Google",
				      .timeout_ns = way->timeout_ns };
		const char *last, *zone_end;

		buf_printf(&path, "/computeMetadata/v1/%s", questions[i].name);
		q.path = buf_text(&path);
		if (!ask(&q, &answer) && i == 0)
			return; /* it is none of theirs */
		last = strrchr(buf_text(&answer), '/');
		last = last ? last + 1 : buf_text(&answer);
		add_text(f, questions[i].key, last);
		zone_end = strrchr(last, '-');
		if (!strcmp(questions[i].key, "cloud.availability_zone") && zone_end)
			detectors_add(f, "cloud.region", last, (size_t)(zone_end - last));
	}
	add_text(f, "cloud.provider", "gcp");
	add_text(f, "cloud.platform", "gcp_compute_engine");
}

/* --- Microsoft --- */

static void run_azure(struct facts *f, const struct detector_way *way)
{
	static const struct member members[] = {
		{ "location", "cloud.region" }, { "subscriptionId", "cloud.account.id" },
		{ "vmId", "host.id" },		{ "name", "host.name" },
		{ "vmSize", "azure.vm.size" },	{ "resourceGroupName", "azure.resourcegroup.name" },
	};
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	const struct question q = {
		.base = way->base ? way->base : link_local,
		.path = "/metadata/instance/compute?api-version=2020-09-01&format=json",
		.header = "Metadata: true",
		.timeout_ns = way->timeout_ns,
	};

	if (!ask(&q, &answer) || !take_members(f, &answer, members, ARRAY_LEN(members)) || !f->count)
		return;
	add_text(f, "cloud.provider", "azure");
	add_text(f, "cloud.platform", "azure_vm");
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->items[i].key, "host.name")) {
			add_text(f, "azure.vm.name", f->items[i].value);
			break;
		}
}

static const struct detector detectors[] = {
	{ "env", false, run_env }, { "system", false, run_system }, { "docker", true, run_docker },
	{ "ec2", true, run_ec2 },  { "gcp", true, run_gcp },	    { "azure", true, run_azure },
	{ "eks", true, run_eks },  { "ecs", true, run_ecs },	    { "kubeadm", true, run_kubeadm },
};

const char *const stage_detectors[] = { "env", "system", "docker", "ec2", "gcp", "azure", "eks", "ecs", "kubeadm", NULL };

_Static_assert(ARRAY_LEN(stage_detectors) == ARRAY_LEN(detectors) + 1, "all detectors have a name that users may write");

const struct detector *detector_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(detectors); i++)
		if (!strcmp(detectors[i].name, name))
			return &detectors[i];
	return NULL;
}
