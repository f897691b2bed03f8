/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We do not use elfutils' libdebuginfod: it puts what came into the cache before anybody can verify it, it blocks, and it
 * brings a second libcurl with a second TLS library into the process. The part of it that we need is small: GET
 * URL/buildid/ID/debuginfo.
 *
 * Jobs are kept in a table under one lock; the thread takes the oldest that waits, and fetches outside the lock. A job that
 * ended stays for a while, so that a server is not asked the same again; a file that came needs no job, it is in the cache.
 * The thread alone writes there. curl's progress callback, called at least once a second, ends a transfer that is too long
 * or no longer wanted.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "base/thread.h"
#include "symbols/find/debuginfod.h"
#include "symbols/find/debuginfod_cache.h"
#include "symbols/symbols.h"

enum {
	MAX_JOBS = 256,
	ID_BYTES = 65,
	TIMEOUT_S = 90, /* for SLOW_BYTES; both are elfutils' */
	SLOW_BYTES = 100 << 10,
	MAX_TIME_S = 600,
	MAX_REDIRECTS = 10,
	HTTP_OK = 200,
	HTTP_NOT_FOUND = 404,
	FAR_MISS_S = 600, /* as long as elfutils remembers that there is none */
};

#define MAX_FILE_BYTES (4ull << 30)

enum job_state { JOB_FREE, JOB_WAITS, JOB_RUNS, JOB_ENDED };

struct job {
	enum job_state state;
	char id[ID_BYTES];
	uint64_t order;	   /* of those that wait: the smallest is next */
	int error;	   /* once it ended; 0: the file is in the cache, or @fd */
	int fd;		   /* the file that another process has brought; -1: none */
	uint64_t until_ns; /* when the error is forgotten */
};

struct debuginfod {
	char *urls; /* owned */
	uint64_t timeout_s, max_time_s, max_bytes;
	int folder, event_fd;
	pthread_t thread;
	_Atomic bool is_stopped;
	debuginfod_ask_fn ask_far; /* NULL: we ask the servers ourselves */
	void *ask_arg;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct job jobs[MAX_JOBS];
	uint64_t next_order;
	struct debuginfod_counts counts;
};

/* --- one transfer --- */

struct transfer {
	const struct debuginfod *d;
	int fd;
	uint64_t bytes;
	int error; /* why it was ended from here */
};

static size_t write_bytes(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * count;

	t->bytes += len;
	if (t->bytes > t->d->max_bytes)
		t->error = -EFBIG;
	if (!t->error)
		t->error = io_write_all(t->fd, data, len);
	return t->error ? 0 : len;
}

static int watch(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	struct transfer *t = arg;

	(void)now, (void)up_total, (void)up_now;
	if (atomic_load(&t->d->is_stopped))
		t->error = -ECANCELED;
	else if (total > 0 && (uint64_t)total > t->d->max_bytes)
		t->error = -EFBIG;
	return t->error != 0;
}

static void set_options(CURL *easy, const struct debuginfod *d, const char *url, struct transfer *t)
{
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "hearth/" HEARTH_VERSION);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https,file");
	curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	if (d->timeout_s) {
		curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)d->timeout_s);
		curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)d->timeout_s);
		curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)(SLOW_BYTES / d->timeout_s));
	}
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)d->max_time_s);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, watch);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, t);
}

/* The error for the end of a transfer: -ENOENT: the server has no such file. */
static int judge(CURL *easy, CURLcode code, const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->error)
		return t->error;
	if (code == CURLE_FILE_COULDNT_READ_FILE || (code == CURLE_OK && status == HTTP_NOT_FOUND))
		return -ENOENT;
	if (code == CURLE_OPERATION_TIMEDOUT)
		return -ETIMEDOUT;
	return code == CURLE_OK && (status == HTTP_OK || status == 0) ? 0 : -EIO;
}

/* Asks the server at @url, whose text ends after @len bytes, for @id; what comes goes to @fd. */
static int fetch_from(const struct debuginfod *d, const char *url, size_t len, const char *id, int fd, uint64_t *bytes_ret)
{
	struct transfer t = { .d = d, .fd = fd };
	AUTO_FREE char *full = NULL;
	CURL *easy = curl_easy_init();
	int error = -ENOMEM;

	while (len && url[len - 1] == '/')
		len--;
	if (easy && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
	    asprintf(&full, "%.*s/buildid/%s/debuginfo", (int)len, url, id) >= 0) {
		set_options(easy, d, full, &t);
		error = judge(easy, curl_easy_perform(easy), &t);
	}
	curl_easy_cleanup(easy);
	*bytes_ret = t.bytes;
	return error;
}

/* --- a job, in the thread --- */

static bool is_the_one(int fd, const char *id)
{
	struct build_ids ids;

	return build_ids_read(fd, &ids) == 0 && !strcmp(ids.gnu, id);
}

/* Asks one server after another until what one sends is right; -ENOENT only if all said so. */
static int fetch(const struct debuginfod *d, const char *id, int fd, uint64_t *bytes_ret)
{
	int worst = -ENOENT;

	for (const char *url = d->urls + strspn(d->urls, " "); *url;) {
		size_t len = strcspn(url, " ");
		int error = fetch_from(d, url, len, id, fd, bytes_ret);

		if (!error && is_the_one(fd, id))
			return 0;
		if (!error)
			error = -EBADMSG;
		if (error == -ECANCELED)
			return error;
		if (error != -ENOENT)
			worst = error;
		url += len;
		url += strspn(url, " ");
	}
	return worst;
}

static int run_job(const struct debuginfod *d, const char *id, uint64_t *bytes_ret)
{
	char name[DEBUGINFOD_NAME_BYTES];
	AUTO_CLOSE int fd = debuginfod_cache_create(d->folder, id, name);
	int error;

	if (fd < 0)
		return fd;
	error = fetch(d, id, fd, bytes_ret);
	if (!error)
		error = debuginfod_cache_keep(d->folder, id, name);
	if (error)
		debuginfod_cache_drop(d->folder, id, name);
	if (error == -ENOENT)
		debuginfod_cache_miss(d->folder, id);
	return error;
}

static struct job *oldest_waiting(struct debuginfod *d)
{
	struct job *oldest = NULL;

	for (size_t i = 0; i < MAX_JOBS; i++)
		if (d->jobs[i].state == JOB_WAITS && (!oldest || d->jobs[i].order < oldest->order))
			oldest = &d->jobs[i];
	return oldest;
}

static void end_job(struct debuginfod *d, struct job *job, int error, uint64_t bytes)
{
	const long miss_s = d->ask_far ? FAR_MISS_S : debuginfod_cache_miss_s(d->folder);

	job->error = error;
	job->until_ns = clock_mono_ns() + (uint64_t)miss_s * NSEC_PER_SEC;
	job->state = JOB_ENDED;
	if (!error) {
		d->counts.fetched++;
		d->counts.bytes += bytes;
	} else if (error == -ENOENT) {
		d->counts.missing++;
	} else if (error == -EBADMSG) {
		d->counts.unverified++;
	} else {
		d->counts.failed++;
	}
	pthread_cond_broadcast(&d->changed);
	eventfd_write(d->event_fd, 1);
}

static void *work(void *arg)
{
	struct debuginfod *d = arg;

	debuginfod_cache_clean(d->folder);
	pthread_mutex_lock(&d->lock);
	while (!atomic_load(&d->is_stopped)) {
		struct job *job = oldest_waiting(d);
		uint64_t bytes = 0;
		int error;

		if (!job) {
			thread_cond_wait(&d->changed, &d->lock, UINT64_MAX);
			continue;
		}
		job->state = JOB_RUNS; /* nobody else touches it until it ended */
		pthread_mutex_unlock(&d->lock);
		error = run_job(d, job->id, &bytes);
		pthread_mutex_lock(&d->lock);
		end_job(d, job, error, bytes);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* --- questions --- */

static bool is_build_id(const char *id)
{
	size_t len = strspn(id, "0123456789abcdef");

	return len >= 4 && len < ID_BYTES && !id[len];
}

static void release_job(struct job *job)
{
	if (job->state != JOB_FREE && job->fd >= 0)
		close(job->fd);
	job->state = JOB_FREE;
	job->fd = -1;
}

/* The job for @id; a free one if there is none, or the one that ended first; NULL: all are busy. */
static struct job *find_job(struct debuginfod *d, const char *id)
{
	struct job *best = NULL;

	for (size_t i = 0; i < MAX_JOBS; i++) {
		struct job *job = &d->jobs[i];

		if (job->state != JOB_FREE && !strcmp(job->id, id))
			return job;
		if (job->state == JOB_FREE ||
		    (job->state == JOB_ENDED && (!best || (best->state == JOB_ENDED && job->until_ns < best->until_ns))))
			best = job;
	}
	if (best)
		release_job(best);
	return best;
}

/* Does debuginfod_find for a file that is not in the cache. Called with the lock. */
static int ask(struct debuginfod *d, const char *id)
{
	struct job *job = find_job(d, id);

	if (!job)
		return -EAGAIN;
	if (job->state == JOB_ENDED && job->error && clock_mono_ns() < job->until_ns)
		return job->error;
	if (job->state == JOB_WAITS || job->state == JOB_RUNS)
		return -EINPROGRESS;
	release_job(job);
	*job = (struct job){ .state = JOB_WAITS, .order = d->next_order++, .fd = -1 };
	memcpy(job->id, id, strlen(id) + 1);
	if (d->ask_far && d->ask_far(d->ask_arg, id)) {
		release_job(job);
		return -EAGAIN;
	}
	pthread_cond_broadcast(&d->changed);
	return -EINPROGRESS;
}

/* A descriptor of a file that the other process has brought. Called with the lock. */
static int find_brought(struct debuginfod *d, const char *id)
{
	for (size_t i = 0; i < MAX_JOBS; i++) {
		const struct job *job = &d->jobs[i];
		int fd;

		if (job->state != JOB_ENDED || job->fd < 0 || strcmp(job->id, id) != 0)
			continue;
		fd = fcntl(job->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	return -ENODATA;
}

int debuginfod_find(struct debuginfod *d, const char *build_id)
{
	int result;

	if (!is_build_id(build_id))
		return -EINVAL;
	/* Under the lock, or what comes between the look and the question would be asked for twice. */
	pthread_mutex_lock(&d->lock);
	result = d->ask_far ? find_brought(d, build_id) : debuginfod_cache_find(d->folder, build_id);
	if (result == -ENODATA)
		result = ask(d, build_id);
	pthread_mutex_unlock(&d->lock);
	return result;
}

int debuginfod_wait(struct debuginfod *d, const char *build_id)
{
	int result;

	if (!is_build_id(build_id))
		return -EINVAL;
	pthread_mutex_lock(&d->lock);
	for (;;) {
		result = debuginfod_cache_find(d->folder, build_id);
		if (result == -ENODATA)
			result = ask(d, build_id);
		if (result != -EINPROGRESS && result != -EAGAIN)
			break;
		thread_cond_wait(&d->changed, &d->lock, UINT64_MAX);
	}
	pthread_mutex_unlock(&d->lock);
	return result;
}

int debuginfod_event_fd(const struct debuginfod *d)
{
	return d->event_fd;
}

struct debuginfod_counts debuginfod_counts(struct debuginfod *d)
{
	struct debuginfod_counts counts;

	pthread_mutex_lock(&d->lock);
	counts = d->counts;
	pthread_mutex_unlock(&d->lock);
	return counts;
}

/* --- life --- */

/* A number out of the environment; 0 there means no limit. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value;

	return text && !parse_u64(text, &value) && value < INT64_MAX ? value : otherwise;
}

static void release(struct debuginfod *d)
{
	cleanup_close(&d->folder);
	cleanup_close(&d->event_fd);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d->urls);
	if (!d->ask_far)
		curl_global_cleanup();
	free(d);
}

int debuginfod_new(struct debuginfod **ret)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d;
	int error = 0;

	if (!urls || !urls[strspn(urls, " ")])
		return -ENOENT;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* counted */
	pthread_mutex_init(&d->lock, NULL);
	thread_cond_init(&d->changed);
	d->urls = strdup(urls);
	d->timeout_s = setting("DEBUGINFOD_TIMEOUT", TIMEOUT_S);
	d->max_time_s = setting("DEBUGINFOD_MAXTIME", MAX_TIME_S);
	d->max_bytes = setting("DEBUGINFOD_MAXSIZE", MAX_FILE_BYTES);
	d->max_bytes = d->max_bytes ? d->max_bytes : UINT64_MAX;
	d->folder = debuginfod_cache_open();
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!d->urls)
		error = -ENOMEM;
	else if (d->folder < 0)
		error = d->folder;
	else if (d->event_fd < 0)
		error = -errno;
	if (!error)
		error = thread_start(&d->thread, "debuginfod", work, d);
	if (error) {
		release(d);
		return error;
	}
	*ret = d;
	return 0;
}

int debuginfod_new_far(debuginfod_ask_fn ask_far, void *arg, struct debuginfod **ret)
{
	struct debuginfod *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ask_far = ask_far;
	d->ask_arg = arg;
	d->folder = -1;
	pthread_mutex_init(&d->lock, NULL);
	thread_cond_init(&d->changed);
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->event_fd < 0) {
		int error = -errno;

		debuginfod_free(d);
		return error;
	}
	*ret = d;
	return 0;
}

void debuginfod_answer(struct debuginfod *d, const char *build_id, int error, int fd)
{
	struct stat st = { 0 };
	struct job *job;

	if (fd >= 0)
		(void)fstat(fd, &st);
	pthread_mutex_lock(&d->lock);
	job = find_job(d, build_id);
	if (job && job->state == JOB_WAITS) {
		job->fd = MOVE_FD(fd);
		end_job(d, job, error, (uint64_t)st.st_size);
	}
	pthread_mutex_unlock(&d->lock);
	if (fd >= 0)
		close(fd);
}

void debuginfod_free(struct debuginfod *d)
{
	if (!d)
		return;
	for (size_t i = 0; d->ask_far && i < MAX_JOBS; i++)
		release_job(&d->jobs[i]);
	if (d->ask_far) {
		release(d);
		return;
	}
	pthread_mutex_lock(&d->lock);
	atomic_store(&d->is_stopped, true);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	release(d);
}
