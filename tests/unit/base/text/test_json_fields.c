/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by tables of their members: null in every place, members of other kinds, texts that end early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/json_fields.h"

struct read {
	struct buf said;
};

static bool read_name(struct json_reader *r, void *arg)
{
	struct read *to = arg;
	struct json_text text;

	if (!json_read_text(r, &text))
		return false;
	buf_printf(&to->said, "name=%.*s;", (int)text.len, text.data);
	return true;
}

static void add_label(void *arg, struct json_text key, struct json_text value)
{
	struct read *to = arg;

	buf_printf(&to->said, "%.*s=%.*s;", (int)key.len, key.data, (int)value.len, value.data);
}

static bool read_labels(struct json_reader *r, void *arg)
{
	return json_read_texts(r, add_label, arg);
}

static bool read_object(struct json_reader *r, void *arg)
{
	static const struct json_field fields[] = { { "name", read_name }, { "labels", read_labels } };

	return json_read_fields(r, fields, ARRAY_LEN(fields), arg);
}

static bool read_list(struct json_reader *r, void *arg)
{
	return json_read_items(r, read_object, arg);
}

static void check(bool (*read)(struct json_reader *r, void *arg), const char *json, bool is_good, const char *said)
{
	struct json_reader r;
	struct read to = { .said = BUF_EMPTY };

	json_reader_init(&r, json, strlen(json));
	if (read(&r, &to) != is_good || (is_good && (r.error || !json_at_end(&r))) || strcmp(buf_text(&to.said), said) != 0)
		fail_msg("%s: error %s, '%s'", json, r.error ? r.error : "none", buf_text(&to.said));
	json_reader_fini(&r);
	buf_fini(&to.said);
}

static void test_fields(void **state)
{
	(void)state;
	check(read_object, "{}", true, "");
	check(read_object, "null", true, "");
	check(read_object, "{\"name\":\"a\",\"other\":[1,{\"name\":\"no\"}],\"nam\":\"no\",\"names\":\"no\"}", true,
	      "name=a;");
	check(read_object, "{\"name\":null}", true, "name=;");
	check(read_object, "{\"name\":\"a\",\"name\":\"b\"}", true, "name=a;name=b;");
	check(read_object, "[]", false, "");
	check(read_object, "{\"name\":1,\"name\":\"b\"}", false, "");
	check(read_object, "{\"name\":\"a\",", false, "name=a;");
	check(read_object, "{\"name\":\"a\"", false, "name=a;");
	check(read_object, "{\"other\":tru}", false, "");
	check(read_object, "{name:1}", false, "");
}

static void test_items(void **state)
{
	(void)state;
	check(read_list, "[]", true, "");
	check(read_list, "null", true, "");
	check(read_list, "[{\"name\":\"a\"},null,{\"name\":\"b\"}]", true, "name=a;name=b;");
	check(read_list, "[{\"name\":\"a\"},7,{\"name\":\"b\"}]", false, "name=a;");
	check(read_list, "[{\"name\":\"a\"}", false, "name=a;");
	check(read_list, "{}", false, "");
}

static void test_texts(void **state)
{
	char json[600], said[600];

	(void)state;
	check(read_labels, "{}", true, "");
	check(read_labels, "null", true, "");
	check(read_labels, "{\"a\\n\":\"b\\t\",\"n\":1,\"o\":{\"p\":\"no\"},\"x\":null,\"\":\"no\",\"c\":\"\"}", true,
	      "a\n=b\t;c=;");
	check(read_labels, "{\"a\":\"b\",\"n\":[}", false, "a=b;");
	check(read_labels, "{\"a\":\"b\",\"c\":\"d}", false, "a=b;");
	check(read_labels, "{\"a\":\"b\",c}", false, "a=b;");
	check(read_labels, "[]", false, "");
	for (int len = 511; len <= 512; len++) { /* the longest key that is taken, and one more */
		snprintf(json, sizeof(json), "{\"%0*d\":\"v\"}", len, 0);
		snprintf(said, sizeof(said), "%0*d=v;", len, 0);
		check(read_labels, json, true, len == 511 ? said : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
