/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/symbols, without HTTP: files with symbols are unpacked, read and put to use. See backend/naming/bare_names.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/api/api_call.h"
#include "backend/naming/bare_names.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "symbols/sources/symbol_image.h"

enum {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_TOO_LARGE = 413,
	HTTP_UNPROCESSABLE = 422,
	HTTP_INTERNAL_ERROR = 500,
	HTTP_UNAVAILABLE = 503,
	HTTP_NO_ROOM = 507,
};

/* --- with the store --- */

int api_symbols_init(struct api *api)
{
	struct store *store = api->config.store;
	struct store_status status = { .kind = NULL };
	int err;

	(void)store->read->status(store, &status); /* a server may be away */
	api->folder = strdup(status.folder ? status.folder : "/tmp");
	if (!api->folder)
		return -ENOMEM;
	if (!store->write->name_frames || !status.kind)
		return 0;
	err = bare_names_new(store, status.folder, &api->names);
	if (err == -ENOMEM)
		return err;
	if (err)
		log_warn("symbols cannot be sent to this store, its folder %s/symbols cannot be used: %s", status.folder,
			 strerror(-err));
	return 0;
}

void api_symbols_fini(struct api *api)
{
	bare_names_free(api->names);
	free(api->folder);
}

void api_symbols_update(struct api *api)
{
	int err = api->names ? bare_names_update(api->names) : 0;

	if (err)
		log_debug("bare addresses could not be named: %s", strerror(-err));
}

uint64_t api_work_ns(const struct api *api)
{
	return api->names ? bare_names_search_ns(api->names) : UINT64_MAX;
}

void api_work(struct api *api)
{
	struct bare_names_taken taken = { .told = NULL };
	int err = bare_names_search(api->names, &taken);

	if (!err)
		log_info("symbols of build id %s were found: %llu addresses named", taken.build_id,
			 (unsigned long long)taken.named);
	else if (err != -ENOENT)
		log_debug("a file with symbols that was found is of no use: %s", strerror(-err));
}

void api_abandon(struct api *api)
{
	if (api->names)
		bare_names_abandon(api->names);
}

void api_resume(struct api *api)
{
	if (api->names)
		bare_names_resume(api->names);
}

int api_symbols_file(const struct api *api)
{
	int fd = api->names ? open(api->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -ENOENT;

	return fd < 0 && api->names ? -errno : fd;
}

/* --- unpacking --- */

/* The file's content into @out, another file. The blocks of @out are allocated before it is written to, or a full disk would
 * raise a signal. */
static int unpack_mapped(const struct symbol_image *packed, enum ingest_encoding encoding, size_t room, int out)
{
	struct unpacker *u = unpacker_new();
	size_t len = 0;
	void *data;
	int err = u ? -posix_fallocate(out, 0, (off_t)(room ? room : 1)) : -ENOMEM;

	data = err ? MAP_FAILED : mmap(NULL, room ? room : 1, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
	if (!err && data == MAP_FAILED)
		err = -errno;
	if (!err)
		err = unpack(u, encoding, packed->data, packed->len_bytes, data, room, &len);
	if (data != MAP_FAILED)
		munmap(data, room ? room : 1);
	if (!err && ftruncate(out, (off_t)len))
		err = -errno;
	unpacker_free(u);
	return err;
}

static int unpack_file(int fd, enum ingest_encoding encoding, int out)
{
	struct symbol_image packed;
	size_t room;
	int err = symbol_image_map(fd, &packed);

	if (err)
		return err;
	err = unpack_room(encoding, packed.data, packed.len_bytes, API_SYMBOLS_MAX_BYTES, &room);
	err = err ? err : unpack_mapped(&packed, encoding, room, out);
	if (err == -ENOSPC &&
	    room < API_SYMBOLS_MAX_BYTES) { /* several members; or the disk is full, which it will say again */
		room = API_SYMBOLS_MAX_BYTES;
		err = unpack_mapped(&packed, encoding, room, out);
	}
	symbol_image_unmap(&packed);
	return err == -EBADMSG ? -EILSEQ : err; /* the former says that the store is damaged */
}

/* --- the answer --- */

static const struct {
	int err;
	unsigned status;
	const char *text;
} refusals[] = {
	{ -ENOEXEC, HTTP_BAD_REQUEST, "this is no 64-bit ELF file: send an executable, a library or a .debug file" },
	{ -EILSEQ, HTTP_BAD_REQUEST, "it is not compressed as its Content-Encoding says, or broken" },
	{ -EBADMSG, HTTP_INTERNAL_ERROR, "the store is damaged: see the log, and 'hearth store verify'" },
	{ -ENODATA, HTTP_UNPROCESSABLE,
	  "there are no names in it: send the file as it was before 'strip', or its .debug file" },
	{ -EFBIG, HTTP_TOO_LARGE, "unpacked it is larger than 1 GB" },
	{ -E2BIG, HTTP_TOO_LARGE, "its names take more memory than hearth uses for one file" },
	{ -ENOMEM, HTTP_UNAVAILABLE, "no memory for this now: try again" },
	{ -ETIMEDOUT, HTTP_UNPROCESSABLE, "reading it takes too long" },
	{ -EPROTO, HTTP_UNPROCESSABLE, "it is broken: its reader ended over it" },
	{ -ENOSPC, HTTP_NO_ROOM, "there is no room left on the store's disk" },
	{ -ECANCELED, HTTP_UNAVAILABLE, "hearth ends: try again" },
	{ -EROFS, HTTP_UNPROCESSABLE, "this store is only read" },
};

static void answer_refusal(struct api_answer *answer, int err)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		if (refusals[i].err == err) {
			api_write_error(answer, refusals[i].status, refusals[i].text);
			return;
		}
	}
	log_warn("symbols that were sent cannot be kept: %s", strerror(-err));
	api_write_error(answer, HTTP_INTERNAL_ERROR, strerror(-err));
}

static void write_chains(struct json *j, const struct bare_names_told *told)
{
	json_key(j, "names");
	json_array_begin(j);
	for (uint32_t i = 0; i < intern_count(told->chains); i++) {
		size_t len;
		const char *name = intern_get(told->chains, i, &len), *end = name + len;

		json_object_begin(j);
		api_write_text(j, "function", name);
		json_key(j, "inlined");
		json_array_begin(j);
		while ((name += strlen(name) + 1) < end)
			json_string(j, name);
		json_array_end(j);
		api_write_number(j, "addresses", (int64_t)told->addresses[i]);
		json_object_end(j);
	}
	json_array_end(j);
	api_write_number(j, "more", (int64_t)told->more);
}

static void answer_taken(struct api_answer *answer, const struct bare_names_taken *taken)
{
	struct json j;

	answer->status = HTTP_OK;
	answer->content_type = "application/json";
	json_init(&j, &answer->body, 0);
	json_object_begin(&j);
	api_write_text(&j, "build_id", taken->build_id);
	api_write_number(&j, "functions", (int64_t)taken->functions);
	api_write_number(&j, "named", (int64_t)taken->named);
	write_chains(&j, taken->told);
	json_object_end(&j);
	log_info("symbols of build id %s: %llu functions, %llu addresses named", taken->build_id,
		 (unsigned long long)taken->functions, (unsigned long long)taken->named);
}

void api_take_symbols(struct api *api, int fd, enum ingest_encoding encoding, struct api_answer *answer)
{
	AUTO_CLOSE int unpacked = -1;
	struct bare_names_told told = { .chains = intern_new() };
	struct bare_names_taken taken = { .told = &told };
	int err = told.chains ? 0 : -ENOMEM;

	if (!err && encoding != ENCODING_IDENTITY) {
		unpacked = api_symbols_file(api);
		err = unpacked < 0 ? unpacked : unpack_file(fd, encoding, unpacked);
		fd = unpacked;
	}
	err = err ? err : bare_names_take(api->names, fd, &taken);
	if (err)
		answer_refusal(answer, err);
	else
		answer_taken(answer, &taken);
	intern_free(told.chains);
}
