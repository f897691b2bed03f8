/* SPDX-License-Identifier: Apache-2.0 */
/* Which attributes are told, and what labels and annotations become: by what users write, and what of that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "enrich/known/rules.h"

static struct rules *make(const struct rules_config *config)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct rules *r = NULL;

	if (rules_new(config, &r, &error))
		fail_msg("%s", buf_text(&error));
	return r;
}

static void refuses(const struct rules_config *config, const char *text)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct rules *r = NULL;

	assert_int_equal(rules_new(config, &r, &error), -EINVAL);
	assert_null(r);
	assert_string_equal(buf_text(&error), text);
}

/* --- keys --- */

static struct rules *keys(const char *first, const char *second)
{
	const char *const list[] = { first, second };

	return make(&(struct rules_config){ .keys = list, .key_count = !first ? 0 : !second ? 1 : 2 });
}

static unsigned count_told(const struct rules *r)
{
	unsigned count = 0;

	for (int i = 0; i < ENRICH_KEY_COUNT; i++)
		count += rules_tell(r, (enum enrich_key)i);
	return count;
}

static void test_the_usual_keys(void **state)
{
	struct rules *r = keys(NULL, NULL);

	(void)state;
	assert_true(rules_tell(r, ENRICH_POD_NAME));
	assert_true(rules_tell(r, ENRICH_SERVICE_INSTANCE));
	assert_false(rules_tell(r, ENRICH_POD_IP));
	assert_false(rules_tell(r, ENRICH_IMAGE_DIGESTS));
	assert_false(rules_use_service_labels(r));
	assert_false(rules_want_namespaces(r));
	rules_free(r);
	rules_free(NULL);
}

static void test_chosen_keys_alone(void **state)
{
	struct rules *r = keys("k8s.pod.ip", "k8s.pod.name");

	(void)state;
	assert_int_equal(count_told(r), 2);
	assert_true(rules_tell(r, ENRICH_POD_IP));
	assert_true(rules_tell(r, ENRICH_POD_NAME));
	rules_free(r);
}

/* A list that begins by leaving out goes from the usual ones; else what is left out is taken from the list. */
static void test_keys_left_out(void **state)
{
	struct rules *usual = keys(NULL, NULL), *r = keys("-k8s.pod.name", NULL);

	(void)state;
	assert_int_equal(count_told(r), count_told(usual) - 1);
	assert_false(rules_tell(r, ENRICH_POD_NAME));
	rules_free(r);
	r = keys("-k8s.pod.name", "k8s.pod.ip");
	assert_int_equal(count_told(r), count_told(usual));
	assert_true(rules_tell(r, ENRICH_POD_IP));
	rules_free(r);
	r = keys("k8s.pod.ip", "-k8s.pod.ip");
	assert_int_equal(count_told(r), 0);
	rules_free(r);
	rules_free(usual);
}

static void test_all_keys(void **state)
{
	struct rules *r = keys("all", NULL);

	(void)state;
	assert_int_equal(count_told(r), ENRICH_KEY_COUNT);
	rules_free(r);
	r = keys("all", "-k8s.pod.ip");
	assert_int_equal(count_told(r), ENRICH_KEY_COUNT - 1);
	assert_false(rules_tell(r, ENRICH_POD_IP));
	rules_free(r);
	r = keys("-all", "k8s.pod.ip");
	assert_int_equal(count_told(r), 1);
	rules_free(r);
}

/* container.id is told anyhow. */
static void test_the_key_that_is_always_told(void **state)
{
	struct rules *r = keys("container.id", NULL);

	(void)state;
	assert_int_equal(count_told(r), 0);
	rules_free(r);
}

static void test_no_such_key(void **state)
{
	static const char *const near[] = { "k8s.pod.nam" }, *const out[] = { "-k8s.pod.nam" }, *const far[] = { "xyzzy" };

	(void)state;
	refuses(&(struct rules_config){ .keys = near, .key_count = 1 },
		"there is no attribute 'k8s.pod.nam'; did you mean k8s.pod.name?");
	refuses(&(struct rules_config){ .keys = out, .key_count = 1 },
		"there is no attribute 'k8s.pod.nam'; did you mean k8s.pod.name?");
	refuses(&(struct rules_config){ .keys = far, .key_count = 1 }, "there is no attribute 'xyzzy'");
}

/* --- labels and annotations --- */

/* What the label, or by @source something else, @key becomes; NULL: nothing. */
static void becomes(struct rules *r, enum rule_source source, const char *key, const char *attribute)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	size_t at = 0;

	buf_puts(&out, "of before");
	assert_int_equal(rules_attribute(r, source, key, strlen(key), &at, &out), attribute != NULL);
	if (attribute)
		assert_string_equal(buf_text(&out), attribute);
}

static struct rules *labels(const char *label, const char *annotation)
{
	return make(&(struct rules_config){ .labels = &label,
					    .label_count = label != NULL,
					    .annotations = &annotation,
					    .annotation_count = annotation != NULL });
}

static void test_a_label(void **state)
{
	struct rules *r = labels("tier", NULL);

	(void)state;
	becomes(r, RULE_POD_LABEL, "tier", "k8s.pod.labels.tier");
	becomes(r, RULE_POD_LABEL, "tie", NULL);
	becomes(r, RULE_POD_LABEL, "tiers", NULL);
	becomes(r, RULE_POD_ANNOTATION, "tier", NULL);
	becomes(r, RULE_NAMESPACE_LABEL, "tier", NULL);
	assert_false(rules_want_namespaces(r));
	rules_free(r);
	r = labels("pod:tier", NULL);
	becomes(r, RULE_POD_LABEL, "tier", "k8s.pod.labels.tier");
	rules_free(r);
}

static void test_a_label_by_another_name(void **state)
{
	struct rules *r = labels("app.tier=tier", "team=namespace:owner");

	(void)state;
	becomes(r, RULE_POD_LABEL, "tier", "app.tier");
	becomes(r, RULE_NAMESPACE_ANNOTATION, "owner", "team");
	becomes(r, RULE_POD_ANNOTATION, "owner", NULL);
	assert_true(rules_want_namespaces(r));
	rules_free(r);
}

/* One label may become several attributes, each of them once. */
static void test_several_rules(void **state)
{
	static const char *const texts[] = {
		"namespace:tier", "tier", "/t.*/", "my.tier=tier", "my.tier=/ti.*/", "one=/t.*/"
	};
	static const char *const attributes[] = { "k8s.pod.labels.tier", "my.tier", "one" };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct rules *r = make(&(struct rules_config){ .labels = texts, .label_count = ARRAY_LEN(texts) });
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
		assert_true(rules_attribute(r, RULE_POD_LABEL, "tier", 4, &at, &out));
		assert_string_equal(buf_text(&out), attributes[i]);
	}
	assert_false(rules_attribute(r, RULE_POD_LABEL, "tier", 4, &at, &out));
	at = 0;
	assert_true(rules_attribute(r, RULE_POD_LABEL, "team", 4, &at, &out));
	assert_string_equal(buf_text(&out), "k8s.pod.labels.team");
	assert_true(rules_attribute(r, RULE_POD_LABEL, "team", 4, &at, &out));
	assert_string_equal(buf_text(&out), "one");
	assert_false(rules_attribute(r, RULE_POD_LABEL, "team", 4, &at, &out));
	rules_free(r);
}

static void test_annotations_and_namespaces(void **state)
{
	struct rules *r = labels("namespace:zone", "build");

	(void)state;
	becomes(r, RULE_NAMESPACE_LABEL, "zone", "k8s.namespace.labels.zone");
	becomes(r, RULE_POD_LABEL, "zone", NULL);
	becomes(r, RULE_POD_ANNOTATION, "build", "k8s.pod.annotations.build");
	assert_true(rules_want_namespaces(r));
	rules_free(r);
	r = labels(NULL, "namespace:note");
	becomes(r, RULE_NAMESPACE_ANNOTATION, "note", "k8s.namespace.annotations.note");
	assert_true(rules_want_namespaces(r));
	rules_free(r);
}

/* A pattern is for the whole of a key. */
static void test_patterns(void **state)
{
	struct rules *r = labels("/app.*name/", "note=/[ab]/");

	(void)state;
	becomes(r, RULE_POD_LABEL, "app.kubernetes.io/name", "k8s.pod.labels.app.kubernetes.io/name");
	becomes(r, RULE_POD_LABEL, "my-app-name", NULL);
	becomes(r, RULE_POD_ANNOTATION, "a", "note");
	becomes(r, RULE_POD_ANNOTATION, "ab", NULL);
	rules_free(r);
	r = labels("/a=b/", NULL); /* the equals sign is the pattern's */
	becomes(r, RULE_POD_LABEL, "a=b", "k8s.pod.labels.a=b");
	rules_free(r);
	r = labels("/x/", NULL); /* the shortest */
	becomes(r, RULE_POD_LABEL, "x", "k8s.pod.labels.x");
	rules_free(r);
}

/* Of several rules that fit the first counts. */
static void test_the_first_rule(void **state)
{
	static const char *const list[] = { "first=a", "second=/.*/", "third=a" };
	struct rules *r = make(&(struct rules_config){ .labels = list, .label_count = 3, .service_labels = true });

	(void)state;
	becomes(r, RULE_POD_LABEL, "a", "first");
	becomes(r, RULE_POD_LABEL, "b", "second");
	assert_true(rules_use_service_labels(r));
	rules_free(r);
}

static void test_rules_that_are_none(void **state)
{
	static const char *const texts[] = { "", "=a", "a=", "namespace:", "pod:", "a=namespace:", "//", "/", "/a", "x=/a" };
	char wanted[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		snprintf(wanted, sizeof(wanted), "'%s' is not [ATTRIBUTE=][namespace:]KEY with a name or /PATTERN/ as KEY",
			 texts[i]);
		refuses(&(struct rules_config){ .labels = &texts[i], .label_count = 1 }, wanted);
		refuses(&(struct rules_config){ .annotations = &texts[i], .annotation_count = 1 }, wanted);
	}
}

static void test_patterns_that_are_none(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	const char *const text = "/(/";
	struct rules *r = NULL;

	(void)state;
	assert_int_equal(rules_new(&(struct rules_config){ .labels = &text, .label_count = 1 }, &r, &error), -EINVAL);
	assert_memory_equal(buf_text(&error), "'/(/': ", 7);
	assert_true(error.len > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_usual_keys),
		cmocka_unit_test(test_chosen_keys_alone),
		cmocka_unit_test(test_keys_left_out),
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_the_key_that_is_always_told),
		cmocka_unit_test(test_no_such_key),
		cmocka_unit_test(test_a_label),
		cmocka_unit_test(test_a_label_by_another_name),
		cmocka_unit_test(test_several_rules),
		cmocka_unit_test(test_annotations_and_namespaces),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_the_first_rule),
		cmocka_unit_test(test_rules_that_are_none),
		cmocka_unit_test(test_patterns_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
