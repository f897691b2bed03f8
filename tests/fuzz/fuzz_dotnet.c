/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a .NET process that lies: the input, over and over, so that every pointer leads somewhere. The first bytes
 * say which release it is and where a place in the code is. Everything is asked that the agent may ask, and metadata and
 * unwind information wherever they may be. Blocks hold their place, rows are sorted and inside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "agent/runtime/file/dotnet_facts.h"
#include "base/cleanup.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MIN_BYTES = 16, READS = 20000 };

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct input *in = arg;

	for (size_t i = 0; i < len; i++)
		((uint8_t *)dst)[i] = in->data[(addr + i) % in->size];
	return 0;
}

static struct code_memory memory_of(struct input *in)
{
	return (struct code_memory){
		.read = read_input, .arg = in, .reads_left = READS, .bytes_left = 1 << 20, .end_ns = UINT64_MAX
	};
}

static void ask_rows(struct dotnet *s, struct input *in, const struct code_block *b)
{
	struct code_memory m = memory_of(in);
	AUTO_FREE struct row *rows = NULL;
	size_t count = 0;

	if (code_dotnet.rows(s, &m, b, &rows, &count))
		return;
	for (size_t i = 0; i < count; i++)
		REQUIRE(rows[i].start < rows[i].end && rows[i].start >= (i ? rows[i - 1].end : b->start) &&
			rows[i].end <= b->end);
}

static void ask_names(struct dotnet *s, struct input *in, const struct code_block *b)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	struct code_memory m = memory_of(in);

	REQUIRE(n);
	(void)code_dotnet.names(s, &m, b, n);
}

/* The same bytes as a PDB, whatever its id is. */
static void ask_pdb(struct input *in, uint32_t number)
{
	struct code_memory m = memory_of(in);
	struct dotnet_points points = { 0 };
	char path[DOTNET_MAX_PATH];
	uint8_t id[CODE_NEED_ID];
	struct dotnet_pdb pdb;

	if (code_read(&m, dotnet_metadata_stream(&m, 0, "#Pdb"), id, sizeof(id)) || dotnet_pdb_open(&m, id, &pdb))
		return;
	if (!dotnet_pdb_points(&pdb, number, &points))
		for (uint32_t i = 0; i < points.count; i++)
			REQUIRE(points.points[i].document && (!i || points.points[i].il >= points.points[i - 1].il));
	free(points.points);
	if (!dotnet_pdb_document(&pdb, number, path))
		REQUIRE(strlen(path) < DOTNET_MAX_PATH);
}

static void ask_bounds(struct dotnet *s, struct input *in, uint64_t debug, uint64_t image)
{
	const struct code_block b = { .own = { [DOTNET_OWN_DEBUG] = debug, [DOTNET_OWN_IMAGE] = image } };
	struct code_memory m = memory_of(in);
	struct dotnet_bounds bounds;
	struct dotnet_image im;
	struct code_need need;

	if (!dotnet_bounds_read(s, &m, &b, &bounds))
		for (uint32_t i = 1; i < bounds.count; i++)
			REQUIRE(bounds.bounds[i].native >= bounds.bounds[i - 1].native);
	free(bounds.bounds);
	m = memory_of(in);
	if (!dotnet_image_open(&m, image, &im) && !dotnet_image_pdb(&im, &need) && image)
		REQUIRE(code_need_is_sound(&need) || !strcmp(need.name, ".") || !strcmp(need.name, ".."));
}

/* A PDB in the image, and lines by it. */
static void ask_embedded(struct dotnet *s, struct input *in, uint64_t debug, uint64_t image)
{
	const struct code_block b = { .end = 64, .own = { [DOTNET_OWN_DEBUG] = debug } };
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	static struct code_files files;
	struct code_memory m = memory_of(in), file;
	struct code_need need = { .base = image };
	struct dotnet_image im;

	REQUIRE(n);
	m.files = &files;
	if (dotnet_image_open(&m, image, &im) || dotnet_embedded_keep(&im, &files))
		return;
	REQUIRE(code_files_has(&files, image) && files.kept_bytes && files.kept_bytes <= CODE_FILES_BYTES);
	REQUIRE(!code_files_find(&m, &need, &file));
	(void)dotnet_lines(s, &m, &b, image, 1, "name", n);
	code_files_fini(&files);
	REQUIRE(!files.kept_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data + MIN_BYTES, size - MIN_BYTES };
	static const uint8_t releases[] = { 8, 9, 10, 3 };
	struct code_facts facts = { .id = CODE_DOTNET };
	struct code_range ranges[CODE_RANGES] = { 0 };
	struct code_memory m;
	struct dotnet s = { 0 };
	struct code_block b;
	char text[DOTNET_MAX_NAME];
	uint64_t pc;

	if (size < 2 * MIN_BYTES)
		return 0;
	ask_pdb(&in, data[5]);
	facts.version = (uint32_t)releases[data[0] % sizeof(releases)] << 16;
	facts.fact[DOTNET_FACT_VARIABLES] = data[1];
	memcpy(&pc, data + 8, sizeof(pc));
	pc &= (1ull << 47) - 1;
	m = memory_of(&in);
	if (code_dotnet.open(&s, &m, &facts, 0))
		return 0;
	ranges[0] = (struct code_range){ pc, pc + 4 * 4096 };
	m = memory_of(&in);
	(void)code_dotnet.ranges(&s, &m, 1, ranges);
	m = memory_of(&in);
	if (!code_dotnet.block(&s, &m, pc, &b)) {
		ask_rows(&s, &in, &b);
		ask_names(&s, &in, &b);
	}
	b = (struct code_block){ .start = pc, .end = pc + 1 + data[2], .own = { [DOTNET_OWN_UNWIND] = data[3] } };
	ask_rows(&s, &in, &b);
	ask_bounds(&s, &in, data[6] % in.size, 0);
	ask_bounds(&s, &in, 0, data[4] % in.size);
	ask_embedded(&s, &in, data[6] % in.size, data[4] % in.size);
	m = memory_of(&in);
	(void)dotnet_metadata_name(&m, data[4] % in.size, data[5], text);
	return 0;
}
