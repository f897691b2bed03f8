/* SPDX-License-Identifier: Apache-2.0 */
/* Words in questions, and what an empty answer offers. */
#include "tests/unit/backend/api_table.h"

static void test_word(void **state)
{
	static const char *const paths[] = { "flamegraph", "top", "timeline", "heatmap" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char url[128];

		snprintf(url, sizeof(url), "/api/v1/%s?query=SHO&" ALL, paths[i]);
		EXPECT(url, "\"total\":10,", "\"word\":{\"text\":\"SHO\",\"as\":\"service\",\"values\":[\"shop\"]}");
		snprintf(url, sizeof(url), "/api/v1/%s?query=Work&" ALL, paths[i]);
		EXPECT(url, "\"total\":9,", "\"word\":{\"text\":\"Work\",\"as\":\"function\",\"values\":[]}");
	}
	EXPECT("/api/v1/flamegraph?query=t&" ALL, "\"total\":22,", "\"as\":\"comm\",\"values\":[\"t3\",\"t1\",\"t2\"]");
	EXPECT("/api/v1/flamegraph?query=work {service=\"shop\"}&ignore=fast&" ALL, "\"total\":5,\"events\":2");
	EXPECT("/api/v1/flamegraph?query=main&focus=idle&" ALL, "\"total\":1,\"events\":1");
	EXPECT("/api/v1/flamegraph?query=.*&" ALL, "\"total\":0,", "\"as\":\"function\"");
	/* Of code without a name the module is looked at; its address only for who writes one. */
	EXPECT("/api/v1/flamegraph?query=app&" ALL, "\"total\":5,", "\"app+0x1000..0x1db0\"");
	EXPECT("/api/v1/flamegraph?query=0x1DB&" ALL, "\"total\":5,", "\"as\":\"function\"");
	EXPECT("/api/v1/flamegraph?query=db&" ALL, "\"total\":0,", "\"as\":\"function\"");
	EXPECT("/api/v1/sandwich?function=work&query=shop&" ALL, "\"whole\":10,", "\"as\":\"service\"");
	/* In one of the two times there is no such service, yet the word means the same. */
	EXPECT("/api/v1/diff?query=mail&from=1000&to=1003&from2=1003&to2=1006", "\"total\":0,\"total2\":12,",
	       "\"word\":{\"text\":\"mail\",\"as\":\"service\"", "\"word2\":{\"text\":\"mail\",\"as\":\"service\"");
	EXPECT("/api/v1/diff?format=top&query=shop&query2=send&" ALL, "\"total2\":5,",
	       "\"word2\":{\"text\":\"send\",\"as\":\"function\"");
}

/* An empty answer tells what there is. */
static void test_nearest(void **state)
{
	static const char *const paths[] = { "flamegraph", "top", "timeline", "heatmap", "sandwich" };
	AUTO_FREE char *full = ask("/api/v1/flamegraph?query=shop&" ALL, 200);

	(void)state;
	assert_null(strstr(full, "nearest"));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char url[128];

		snprintf(url, sizeof(url), "/api/v1/%s?function=work&query=service=\"shpo\",thread=\"t1\"&" ALL, paths[i]);
		EXPECT(url, "\"nearest\":[{\"label\":\"service\",\"value\":\"shop\",\"instead_of\":\"shpo\"}]");
	}
	EXPECT("/api/v1/top?query=thread=\"t\"&" ALL,
	       "\"nearest\":[{\"label\":\"thread\",\"value\":\"t3\",\"instead_of\":\"t\"},{\"label\":\"thread\",\"value\":"
	       "\"t1\",",
	       "\"value\":\"t2\",\"instead_of\":\"t\"}]");
	EXPECT("/api/v1/top?query=maul&" ALL,
	       "\"nearest\":[{\"label\":\"service\",\"value\":\"mail\",\"instead_of\":\"maul\"}]");
	EXPECT("/api/v1/diff?query=service=\"shop\"&query2=service=\"mial\"&" ALL,
	       "\"nearest2\":[{\"label\":\"service\",\"value\":\"mail\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_word, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nearest, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
