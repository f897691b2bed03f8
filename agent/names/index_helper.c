/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job is a conversation: the agent gives a program, the worker says which further files it needs, gets these one by one,
 * and makes the index. One request is under way at a time, and any message counts as its reply: a worker that sends anything
 * else spoils only its own job. The job is over when the template says that its worker has ended: from then on nobody writes
 * to the files it was given.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "agent/helper/elf_wire.h"
#include "agent/helper/elf_worker.h"
#include "agent/names/index_helper.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "symbols/find/debuginfod.h"

enum {
	WALL_SECONDS = 600, /* time for a job at nice 19 on a busy machine */
	SLICE_MS = 10,	    /* a message is small and comes whole */
	MUCH_DWARF_BYTES = 16 << 20,
	HURRIED_NICE = -5, /* for short jobs, each done once, that a busy machine would stretch to seconds */
};

/* Memory for names while they are put together (CODE_NAMES_MAX_BYTES), the index, and decompressed sections. 1 GB of DWARF
 * takes some 10 s. */
#define KIND(text, how_nice)                                                                                     \
	{                                                                                                        \
		.name = text, .make = index_service_new, .memory_bytes = 1ull << 30, .file_bytes = 512ull << 20, \
		.cpu_seconds = 120, .nice = how_nice                                                             \
	}
const struct elf_worker_kind index_first_kind = KIND("hearth-names", 0);
const struct elf_worker_kind index_rest_kind = KIND("hearth-dwarf", 19);

enum step { STEP_IDLE, STEP_OPEN, STEP_GIVE, STEP_MAKE, STEP_END };

struct index_helper {
	const struct elf_worker_kind *kind;
	bool is_in_process;
	struct elf_service *service; /* service of the job, when it is done in this process */
	pid_t template_pid;
	int control;	  /* to the template; -1: it has gone */
	int sock;	  /* to the worker; -1: none */
	pid_t worker_pid; /* 0: not known */
	bool is_hurried;
	struct loop *loop;
	struct debuginfod *servers; /* borrowed; NULL: none */
	struct loop_watch *control_watch, *sock_watch, *timer;
	index_answer_fn fn;
	void *arg;

	struct index_job job;
	enum step step;
	uint32_t needed; /* bits of enum debug_need_kind that were asked for already */
	struct debug_need need;
	unsigned place; /* where the next one is looked for */
	bool has_given; /* the last GIVE brought a file */
	struct index_answer answer;
	struct buf body;
};

static void take_reply(struct index_helper *h, int number);

/* --- the worker's end --- */

static void drop_worker(struct index_helper *h)
{
	loop_remove(MOVE(h->sock_watch));
	if (h->sock >= 0)
		close(MOVE_FD(h->sock));
	elf_service_free(MOVE(h->service));
}

/* The job has its answer, or never will have it: the worker may go. */
static void end_job(struct index_helper *h, int status)
{
	if (h->step == STEP_END)
		return;
	h->step = STEP_END;
	h->answer.status = status;
	drop_worker(h);
}

static void tell(struct index_helper *h)
{
	h->step = STEP_IDLE;
	if (h->timer)
		(void)loop_set_timer(h->timer, 0, 0);
	h->fn(h->arg, &h->answer);
}

/* The error for a worker that ended (as wait(2) tells it) without an answer. */
static int status_of_end(int ended)
{
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == ELF_WORKER_UNFIT)
		return -ECHILD;
	if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGXCPU)
		return -ETIMEDOUT;
	if (WIFSIGNALED(ended) &&
	    (WTERMSIG(ended) == SIGXFSZ || WTERMSIG(ended) == SIGKILL)) /* the kernel was out of memory */
		return -ENOBUFS;
	return -EPROTO;
}

/* --- requests --- */

static void request(struct index_helper *h, enum step step, uint64_t addr, int fd)
{
	static const uint32_t ops[] = {
		[STEP_OPEN] = INDEX_OP_OPEN, [STEP_GIVE] = INDEX_OP_GIVE, [STEP_MAKE] = INDEX_OP_MAKE
	};
	struct elf_wire head = {
		.kind = ELF_WIRE_REQUEST,
		.request = { .op = ops[step], .file = 1, .addr = addr, .can_bring = true },
		.body_bytes = ops[step] == INDEX_OP_MAKE ? strlen(h->job.id) + 1 : 0,
	};

	h->step = step;
	if (h->service) {
		int number = elf_service_call(h->service, &head.request, fd, h->job.id, head.body_bytes, &h->body);

		take_reply(h, number);
	} else if (elf_wire_send(h->sock, &head, h->job.id, fd, NULL, NULL)) {
		end_job(h, -EPIPE);
	}
}

/* Opens the file that a server has, if it is here already. */
static int open_served(struct index_helper *h)
{
	int fd = h->servers && !h->place++ ? debuginfod_find(h->servers, h->need.name) : -ERANGE;

	if (fd == -EINPROGRESS) {
		h->answer.is_awaited = true;
		h->answer.awaited = h->need;
	}
	return fd < 0 ? -ERANGE : fd;
}

/* Gives the next file that may be the one asked for, or none. */
static void give(struct index_helper *h)
{
	bool is_served = h->need.kind == DEBUG_NEED_SERVED || h->need.kind == DEBUG_NEED_COMMON_SERVED;
	AUTO_CLOSE int fd = -1;

	do {
		fd = is_served ? open_served(h) : debug_file_open(&h->job.place, &h->need, h->place++);
	} while (fd < 0 && fd != -ERANGE);
	h->has_given = fd >= 0;
	request(h, STEP_GIVE, h->need.kind, fd < 0 ? -1 : fd);
}

static void take_need(struct index_helper *h)
{
	const struct debug_need *needed = (const void *)h->body.data;

	if (h->body.len != sizeof(*needed) || !debug_need_is_sound(needed) || h->needed >> needed->kind & 1) {
		end_job(h, -EPROTO);
		return;
	}
	h->need = *needed;
	h->needed |= 1u << needed->kind;
	h->place = 0;
	give(h);
}

static void take_opened(struct index_helper *h)
{
	struct index_opened opened;

	if (h->body.len != sizeof(opened)) {
		end_job(h, -EPROTO);
		return;
	}
	memcpy(&opened, h->body.data, sizeof(opened));
	h->answer.has_more = h->job.is_first && h->job.depth == INDEX_FULL && opened.dwarf_bytes > MUCH_DWARF_BYTES;
	if (h->answer.has_more)
		h->job.depth = INDEX_TABLES;
	h->answer.dwarf_bytes = h->job.depth == INDEX_FULL ? opened.dwarf_bytes : 0;
	request(h, STEP_MAKE, h->job.depth, h->job.fd);
}

static void take_made(struct index_helper *h)
{
	bool is_sound = h->body.len == sizeof(h->answer.made);

	if (is_sound)
		memcpy(&h->answer.made, h->body.data, sizeof(h->answer.made));
	end_job(h, is_sound ? 0 : -EPROTO);
}

/* The reply's body is h->body. */
static void take_reply(struct index_helper *h, int number)
{
	if (h->step == STEP_IDLE || h->step == STEP_END)
		return;
	if (h->step == STEP_GIVE && number < 0 && h->has_given)
		give(h); /* the worker found that it was another file */
	else if (h->step == STEP_GIVE && !number)
		request(h, STEP_OPEN, 0, h->job.place.fd);
	else if (h->step == STEP_OPEN && number == ELF_STATUS_NEED)
		take_need(h);
	else if (h->step == STEP_OPEN && !number)
		take_opened(h);
	else if (h->step != STEP_GIVE && !number)
		take_made(h);
	else if (h->step != STEP_GIVE && number < 0)
		end_job(h, number == -ENOMEM || number == -E2BIG ? -ENOBUFS : number);
	else
		end_job(h, -EPROTO);
}

/* --- messages that come --- */

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void on_worker(void *arg, int fd, uint32_t events)
{
	struct index_helper *h = arg;
	AUTO_CLOSE int unasked_fd = -1;
	struct elf_wire head;
	int error = elf_wire_receive(h->sock, &head, &h->body, &unasked_fd, never, NULL);

	(void)fd, (void)events;
	if (error || head.kind != ELF_WIRE_REPLY)
		end_job(h, error == -EPIPE ? -EPIPE : -EPROTO);
	else
		take_reply(h, head.number);
}

/* The helper is lost: no index will be made any more. */
static void lose_template(struct index_helper *h)
{
	loop_remove(MOVE(h->control_watch));
	close(MOVE_FD(h->control));
	if (h->step == STEP_IDLE)
		return;
	end_job(h, -ECHILD);
	h->answer.status = -ECHILD;
	tell(h);
}

/* Messages that the worker sent before it ended are still in the socket. */
static void hear_last_words(struct index_helper *h)
{
	struct pollfd said = { .events = POLLIN };

	while ((said.fd = h->sock) >= 0 && poll(&said, 1, 0) > 0)
		on_worker(h, h->sock, 0);
	end_job(h, -EPIPE);
}

static void on_template(void *arg, int fd, uint32_t events)
{
	struct index_helper *h = arg;
	AUTO_CLOSE int unasked_fd = -1;
	struct elf_wire head;

	(void)fd, (void)events;
	if (elf_wire_receive(h->control, &head, &h->body, &unasked_fd, never, NULL)) {
		lose_template(h);
		return;
	}
	if (head.kind == ELF_WIRE_SPAWNED) {
		h->worker_pid = head.number;
		if (h->is_hurried)
			index_helper_hurry(h);
	}
	if (head.kind != ELF_WIRE_ENDED || h->step == STEP_IDLE)
		return;
	h->worker_pid = 0;
	hear_last_words(h);
	if (h->answer.status == -EPIPE)
		h->answer.status = status_of_end(head.number);
	tell(h);
}

static void on_timer(void *arg)
{
	const struct elf_wire kill_it = { .kind = ELF_WIRE_KILL };
	struct index_helper *h = arg;

	end_job(h, -ETIMEDOUT);
	if (h->control >= 0)
		(void)elf_wire_send(h->control, &kill_it, NULL, -1, NULL, NULL);
}

/* --- jobs --- */

static int spawn(struct index_helper *h)
{
	const struct elf_wire order = { .kind = ELF_WIRE_SPAWN };
	const struct timeval slice = { .tv_usec = SLICE_MS * 1000 };
	int pair[2], error;

	if (h->control < 0)
		return -ECHILD;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	h->sock = pair[0];
	error = setsockopt(h->sock, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) ? -errno : 0;
	if (!error)
		error = loop_add_fd(h->loop, h->sock, EPOLLIN, on_worker, h, &h->sock_watch);
	if (!error && elf_wire_send(h->control, &order, NULL, pair[1], NULL, NULL)) {
		lose_template(h);
		error = -ECHILD;
	}
	close(pair[1]);
	return error;
}

int index_helper_start(struct index_helper *h, const struct index_job *job)
{
	int error;

	h->job = *job;
	h->needed = 0;
	h->answer = (struct index_answer){ 0 };
	error = h->is_in_process ? h->kind->make(&h->service) : spawn(h);
	if (error) {
		drop_worker(h);
		return error;
	}
	if (h->timer)
		(void)loop_set_timer(h->timer, WALL_SECONDS * NSEC_PER_SEC, 0);
	request(h, STEP_OPEN, 0, job->place.fd);
	if (h->is_in_process)
		tell(h);
	return 0;
}

bool index_helper_is_busy(const struct index_helper *h)
{
	return h->step != STEP_IDLE;
}

void index_helper_hurry(struct index_helper *h)
{
	h->is_hurried = true;
	if (h->worker_pid > 0)
		(void)setpriority(PRIO_PROCESS, (id_t)h->worker_pid, HURRIED_NICE);
}

void index_helper_wait(struct index_helper *h, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = h->sock, .events = POLLIN }, { .fd = h->control, .events = POLLIN } };

	if (poll(fds, ARRAY_LEN(fds), timeout_ms) <= 0)
		return;
	if (fds[0].revents)
		on_worker(h, h->sock, 0);
	if (fds[1].revents)
		on_template(h, h->control, 0);
}

/* --- life --- */

int index_helper_new(const struct elf_worker_kind *kind, bool is_in_process, struct index_helper **ret)
{
	struct index_helper *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->kind = kind;
	h->is_in_process = is_in_process;
	h->control = h->sock = -1;
	if (!is_in_process) {
		const struct timeval slice = { .tv_usec = SLICE_MS * 1000 };

		h->template_pid = elf_template_fork(kind, &h->control);
		if (h->template_pid < 0 || setsockopt(h->control, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice))) {
			int error = h->template_pid < 0 ? h->template_pid : -errno;

			index_helper_free(h);
			return error;
		}
	}
	*ret = h;
	return 0;
}

int index_helper_watch(struct index_helper *h, struct loop *loop, struct debuginfod *servers, index_answer_fn fn, void *arg)
{
	int error = 0;

	h->loop = loop;
	h->servers = servers;
	h->fn = fn;
	h->arg = arg;
	if (!h->is_in_process) {
		error = loop_add_fd(loop, h->control, EPOLLIN, on_template, h, &h->control_watch);
		if (!error)
			error = loop_add_timer(loop, on_timer, h, &h->timer);
	}
	return error;
}

void index_helper_free(struct index_helper *h)
{
	if (!h)
		return;
	drop_worker(h);
	loop_remove(h->control_watch);
	loop_remove(h->timer);
	if (h->control >= 0)
		close(h->control);
	while (h->template_pid > 0 && waitpid(h->template_pid, NULL, 0) < 0 && errno == EINTR)
		;
	buf_fini(&h->body);
	free(h);
}
