/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the helper. Invariant: while @sock is open the template has a worker whose end it has not told yet.
 * Blame: a worker that failed on its first file failed because of that file. A worker that read other files before may have
 * failed because of those, so the request is tried once more in a new worker, but not after a timeout. Replies are as
 * suspect as the files that the worker read: they are checked here before anybody uses them. Agent's thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/helper/elf_helper.h"
#include "agent/helper/elf_wire.h"
#include "agent/helper/elf_worker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

enum {
	SLICE_MS = 10,	       /* how often a waiting call looks at the clocks, and lets others read the rings */
	COME_BACK_SLICES = 25, /* so many slices an answer is waited for that may also be fetched later: 0.25 s */
	/* Rows of 256 bytes of code take microseconds, opening the tables of clang milliseconds; the search for calls in
	 * code without symbols takes 2 ms a megabyte on a quiet machine. */
	REQUEST_LIMIT_MS = 500,
	LIMIT_A_MEGABYTE_MS = 10,
	MOST_LIMIT_MS = 2500,
	ORDER_LIMIT_MS = 5000, /* time for the template, which never has long work */
	WALL_FACTOR = 3,
	OWED_WALL_MS = 10000, /* while nobody waits, a worker that gets no processor or disk is left alone for so long */
	TEMPLATES = 3,	      /* one at work and two to take its place */
	WORKER_MEMORY_BYTES = 192 << 20,
	LEAST_NICE = -20, /* the agent waits for it */
};

/* Why a worker ended, the counter's name for it, and the error for a file that was at fault. */
enum failure {
	FAILED_CRASH,
	FAILED_CALL,
	FAILED_TIME,
	FAILED_MEMORY,
	FAILED_NONSENSE,
	FAILED_IDLE,
	FAILED_TEMPLATE,
	FAILURES
};
static const struct {
	const char *labels;
	int status;
} failures[FAILURES] = {
	[FAILED_CRASH] = { "reason=\"crash\"", -EPROTO },	[FAILED_CALL] = { "reason=\"forbidden call\"", -ENOSYS },
	[FAILED_TIME] = { "reason=\"time\"", -ETIMEDOUT },	[FAILED_MEMORY] = { "reason=\"memory\"", -ENOBUFS },
	[FAILED_NONSENSE] = { "reason=\"nonsense\"", -EILSEQ }, [FAILED_IDLE] = { "reason=\"idle\"", -EPROTO },
	[FAILED_TEMPLATE] = { "reason=\"template\"", -ECHILD },
};

/* --- patience --- */

struct patience {
	struct elf_service *service; /* the service whose on_wait is called; NULL: none */
	clockid_t clock;	     /* the clock of the worker's processor time */
	uint64_t limit_ns, wall_ns;  /* limit of that time and of our waiting */
	bool is_spent;		     /* the processor time is used up, or the time after which nobody waits any more */
	uint64_t last_ns, waited_ns; /* waited_ns does not count when we ourselves were stopped or suspended */
	uint64_t used_ns;	     /* of that clock, when we first looked */
};

struct helper {
	struct elf_service service;
	/*
	 * All are forked at the start, when there is nothing to inherit; a later copy of the agent would have BPF objects.
	 */
	struct {
		pid_t pid;
		int control; /* -1: the template has gone */
	} templates[TEMPLATES];
	uint32_t current; /* index of the template at work; TEMPLATES: the helper is lost for good */
	int sock;	  /* to the worker; -1: none */
	clockid_t worker_clock;
	uint32_t file;			 /* the first file the worker was asked about; 0: none yet */
	bool has_answered;		 /* the worker has answered at least once */
	bool has_others;		 /* the worker was asked about other files as well */
	bool is_owed;			 /* the worker works on a request whose caller left; nobody waits for that reply */
	bool is_owed_alone;		 /* the worker had not seen another file then */
	uint32_t owed_file, guilty_file; /* file of that request; of one that failed so, for the next request about it */
	enum failure guilt;
	struct patience owed;
	struct buf scratch;
	struct metric *restarts[FAILURES];
};

/* How long reading the file @fd (-1: none) may take at a time. */
static uint64_t request_limit_ms(int fd)
{
	uint64_t limit_ms = REQUEST_LIMIT_MS;
	struct statx st;

	if (fd >= 0 &&
	    !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BLOCKS, &st)) /* its file system may be silent */
		limit_ms += (st.stx_blocks >> 11) * LIMIT_A_MEGABYTE_MS;	   /* holes take no time */
	return limit_ms < MOST_LIMIT_MS ? limit_ms : MOST_LIMIT_MS;
}

static struct patience patience_of(clockid_t clock, uint64_t limit_ms)
{
	return (struct patience){ .clock = clock,
				  .limit_ns = limit_ms * NSEC_PER_MSEC,
				  .wall_ns = WALL_FACTOR * limit_ms * NSEC_PER_MSEC,
				  .last_ns = clock_mono_ns() };
}

/*
 * May the worker go on? The bound is processor time, so that an honest file does not fail because of a busy machine; a
 * worker that waits for a disk or for a processor is given longer.
 */
static bool is_patient(void *arg)
{
	const uint64_t slice_ns = SLICE_MS * NSEC_PER_MSEC;
	struct patience *p = arg;
	uint64_t now_ns = clock_mono_ns(), passed_ns = now_ns - p->last_ns, used_ns;
	struct timespec used;

	if (passed_ns < slice_ns / 2)
		return true;
	p->last_ns = now_ns;
	if (p->service)
		wait_hook_run(&p->service->on_wait);
	p->waited_ns += passed_ns < 2 * slice_ns ? passed_ns : slice_ns;
	if (clock_gettime(p->clock, &used)) /* the worker is gone; the socket will show that */
		return p->waited_ns < p->limit_ns;
	used_ns = (uint64_t)used.tv_sec * NSEC_PER_SEC + (uint64_t)used.tv_nsec;
	if (!p->used_ns)
		p->used_ns = used_ns > p->waited_ns ? used_ns - p->waited_ns : 0;
	p->is_spent = used_ns - p->used_ns >= p->limit_ns || p->waited_ns >= OWED_WALL_MS * NSEC_PER_MSEC;
	return !p->is_spent && p->waited_ns < p->wall_ns;
}

/* --- orders to the template --- */

static bool is_lost(const struct helper *h)
{
	return h->current == TEMPLATES;
}

/* The template at work has gone, or does not answer; its worker is lost with it. Takes the next template. */
static void lose_template(struct helper *h)
{
	if (h->sock >= 0)
		close(MOVE_FD(h->sock));
	if (is_lost(h))
		return;
	kill(h->templates[h->current].pid, SIGKILL);
	close(MOVE_FD(h->templates[h->current].control));
	h->current++;
	metric_add(h->restarts[FAILED_TEMPLATE], 1);
}

/* Sends @kind (unless it is @expected: nothing) and waits for the template to say @expected, with a number. */
static int order(struct helper *h, enum elf_wire_kind kind, int fd, enum elf_wire_kind expected, int32_t *number_ret)
{
	struct patience patience = patience_of(CLOCK_MONOTONIC, ORDER_LIMIT_MS);
	struct elf_wire head = { .kind = kind };
	int error = 0, control = h->templates[h->current].control;
	AUTO_CLOSE int unasked_fd = -1;

	if (kind != expected)
		error = elf_wire_send(control, &head, NULL, fd, is_patient, &patience);
	if (!error)
		error = elf_wire_receive(control, &head, &h->scratch, &unasked_fd, is_patient, &patience);
	if (!error && head.kind == expected) {
		*number_ret = head.number;
		return 0;
	}
	lose_template(h);
	return -ECHILD;
}

static int set_slices(int sock)
{
	const struct timeval slice = { .tv_usec = SLICE_MS * 1000 };

	return setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) ||
	       setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice));
}

/* -ECHILD: the template at work could not do it. */
static int start_worker(struct helper *h)
{
	int pair[2], error;
	int32_t pid;

	if (is_lost(h))
		return -ECHILD;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	error = set_slices(pair[0]) ? -errno : order(h, ELF_WIRE_SPAWN, pair[1], ELF_WIRE_SPAWNED, &pid);
	close(pair[1]);
	if (error) {
		close(pair[0]);
		return error;
	}
	h->sock = pair[0];
	h->file = 0;
	h->has_others = h->has_answered = h->is_owed = false;
	if (clock_getcpuclockid(pid, &h->worker_clock))
		h->worker_clock = CLOCK_MONOTONIC;
	return 0;
}

/* Ends the worker if it still runs. Returns why it ended: @failure unless that is FAILED_CRASH, which it may correct. */
static enum failure end_worker(struct helper *h, enum failure failure)
{
	enum elf_wire_kind kind = failure == FAILED_CRASH ? ELF_WIRE_ENDED : ELF_WIRE_KILL;
	int32_t status;

	if (order(h, kind, -1, ELF_WIRE_ENDED, &status))
		return failure == FAILED_TIME ? failure : FAILED_TEMPLATE;
	close(MOVE_FD(h->sock));
	if (failure == FAILED_CRASH && WIFEXITED(status)) {
		if (WEXITSTATUS(status) == ELF_WORKER_UNFIT)
			lose_template(h);
		else if (!WEXITSTATUS(status) && h->has_answered)
			failure = FAILED_IDLE;
	}
	if (failure == FAILED_CRASH && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		failure = FAILED_CALL;
	metric_add(h->restarts[failure], 1);
	return failure;
}

/* --- replies --- */

static bool rows_are_sound(const struct elf_request *request, const struct buf *reply)
{
	uint64_t at = request->addr;

	for (size_t off = 0; off < reply->len; off += sizeof(struct row)) {
		struct row row;

		if (reply->len - off < sizeof(row) || reply->data[off + offsetof(struct row, is_signal_frame)] > 1 ||
		    reply->data[off + offsetof(struct row, is_guess)] > 1 ||
		    reply->data[off + offsetof(struct row, is_followed)] > 1 ||
		    reply->data[off + offsetof(struct row, is_behind_syscall)] > 1 ||
		    reply->data[off + offsetof(struct row, is_end)])
			return false;
		memcpy(&row, reply->data + off, sizeof(row));
		if (row.start < at || row.end <= row.start || row.end > request->addr_end)
			return false;
		at = row.end;
	}
	return true;
}

static bool info_is_sound(const struct buf *reply)
{
	const struct elf_info *info = (const void *)reply->data;

	return reply->len == sizeof(*info) && info->segment_count <= ELF_MAX_SEGMENTS &&
	       runtime_file_is_sound(&info->runtime) && memchr(info->build_ids.gnu, 0, sizeof(info->build_ids.gnu)) &&
	       memchr(info->build_ids.go, 0, sizeof(info->build_ids.go)) &&
	       memchr(info->build_ids.htlhash, 0, sizeof(info->build_ids.htlhash));
}

static bool need_is_sound(const struct elf_request *request, const struct buf *reply)
{
	const struct debug_need *needed = (const void *)reply->data;

	return request->can_bring && reply->len == sizeof(*needed) && debug_need_is_sound(needed);
}

static bool is_sound(const struct elf_request *request, const struct elf_wire *head, const struct buf *reply)
{
	if (head->kind != ELF_WIRE_REPLY)
		return false;
	if (head->number == ELF_STATUS_NEED)
		return need_is_sound(request, reply);
	if (head->number > (request->op == ELF_OP_EVAL || request->op == ELF_OP_RETURN) || head->number < -4095)
		return false;
	if (head->number)
		return !reply->len;
	switch ((enum elf_op)request->op) {
	case ELF_OP_INFO:
		return info_is_sound(reply);
	case ELF_OP_ROWS:
		return rows_are_sound(request, reply);
	case ELF_OP_EVAL:
		return reply->len == sizeof(struct row_regs) && reply->data[offsetof(struct row_regs, is_exact)] <= 1;
	case ELF_OP_RETURN:
	case ELF_OP_HOLDS:
	case ELF_OP_FORGET:
	case ELF_OP_GIVE:
		return !reply->len;
	case ELF_OP_CODE:
		return true; /* code_reply_is_sound() */
	}
	return false;
}

/* --- a call --- */

/* Takes the reply that is owed off the socket. 0; -EAGAIN: it has not come (only if not @can_wait); or the error with which
 * the worker failed on it. */
static int collect_owed(struct helper *h, bool can_wait)
{
	struct pollfd answered = { .fd = h->sock, .events = POLLIN };
	AUTO_CLOSE int unasked_fd = -1;
	struct elf_wire head;
	int error;

	h->owed.wall_ns = can_wait ? h->owed.waited_ns + WALL_FACTOR * h->owed.limit_ns : UINT64_MAX;
	if (!can_wait && poll(&answered, 1, 0) == 0)
		return is_patient(&h->owed) ? -EAGAIN : -ETIMEDOUT;
	error = elf_wire_receive(h->sock, &head, &h->scratch, &unasked_fd, is_patient, &h->owed);
	if (!error)
		h->is_owed = false;
	return error;
}

/* Leaves a request that is not answered within COME_BACK_SLICES. True: the reply is owed now. */
static bool leave_owed(struct helper *h, const struct elf_request *request, const struct patience *patience)
{
	struct pollfd answered = { .fd = h->sock, .events = POLLIN };

	if (!request->can_come_back)
		return false;
	h->owed = *patience;
	for (int i = 0; i < COME_BACK_SLICES; i++)
		if (poll(&answered, 1, SLICE_MS) != 0 || !is_patient(&h->owed))
			return false;
	h->is_owed = true;
	h->owed_file = request->file;
	h->is_owed_alone = !h->has_others;
	return true;
}

static enum failure failure_of(int error)
{
	return error == -EPIPE	     ? FAILED_CRASH
	       : error == -ETIMEDOUT ? FAILED_TIME
	       : error == -EPROTO    ? FAILED_NONSENSE
				     : FAILED_MEMORY;
}

/* Asks the worker. 0 with the status in *@status_ret; 1 with *@failure_ret. */
static int ask(struct helper *h, const struct elf_request *request, int fd, const void *payload, size_t payload_bytes,
	       struct buf *reply, int *status_ret, enum failure *failure_ret)
{
	struct patience patience = patience_of(h->worker_clock, request_limit_ms(fd));
	struct elf_wire head = { .kind = ELF_WIRE_REQUEST, .request = *request, .body_bytes = payload_bytes };
	AUTO_CLOSE int unasked_fd = -1;
	int error = h->is_owed ? collect_owed(h, !request->can_come_back) : 0;

	*status_ret = -EAGAIN;
	if (error == -EAGAIN)
		return 0;
	if (error) {
		*failure_ret = failure_of(error);
		if (*failure_ret == FAILED_TIME ? h->owed.is_spent : h->is_owed_alone) {
			h->guilty_file = h->owed_file;
			h->guilt = *failure_ret;
		}
		return 1;
	}
	patience.service = &h->service;
	error = elf_wire_send(h->sock, &head, payload, fd, is_patient, &patience);
	if (!error && leave_owed(h, request, &patience))
		return 0;
	if (!error)
		error = elf_wire_receive(h->sock, &head, reply, &unasked_fd, is_patient, &patience);
	if (!error && !is_sound(request, &head, reply))
		error = -EPROTO;
	if (!error && head.number != -ENOMEM) {
		*status_ret = head.number;
		h->has_answered = true;
		return 0;
	}
	*failure_ret = failure_of(error);
	return 1;
}

static int helper_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
		       size_t payload_bytes, struct buf *reply)
{
	struct helper *h = (struct helper *)service;
	enum failure failure;
	bool is_to_blame, is_others;
	int status;

	buf_reset(reply);
	if (payload_bytes > ELF_WIRE_MAX_BYTES)
		return -EBADMSG;
	do {
		if (h->guilty_file && request->file == h->guilty_file) {
			h->guilty_file = 0;
			return failures[h->guilt].status;
		}
		if (h->sock < 0) {
			if (request->op == ELF_OP_FORGET)
				return 0;
			do {
				status = start_worker(h);
			} while (status == -ECHILD && !is_lost(h));
			if (status)
				return status;
		}
		if (!h->file)
			h->file = request->file;
		h->has_others |= request->file != h->file;
		if (!ask(h, request, fd, payload, payload_bytes, reply, &status, &failure))
			return status;
		buf_reset(reply);
		is_to_blame = !h->has_others;
		is_others = h->is_owed;
		failure = end_worker(h, failure);
		if (is_lost(h))
			return -ECHILD;
	} while (is_others || failure == FAILED_IDLE || failure == FAILED_TEMPLATE ||
		 (failure != FAILED_TIME && !is_to_blame));
	return failures[failure].status;
}

static void helper_distrust(struct elf_service *service)
{
	struct helper *h = (struct helper *)service;

	if (h->sock >= 0)
		(void)end_worker(h, FAILED_NONSENSE);
}

static void helper_free(struct elf_service *service)
{
	struct helper *h = (struct helper *)service;

	if (h->sock >= 0)
		close(h->sock);
	for (int i = 0; i < TEMPLATES; i++)
		if (h->templates[i].control >= 0)
			close(h->templates[i].control);
	for (int i = 0; i < TEMPLATES;
	     i++) /* the template ends with its socket; its time and the workers' count as our children's */
		while (h->templates[i].pid > 0 && waitpid(h->templates[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
	buf_fini(&h->scratch);
	free(h);
}

static const struct elf_service_ops helper_ops = { .call = helper_call, .free = helper_free, .distrust = helper_distrust };

/* The first worker starts at once, so that a machine where it cannot work is known now. */
static int start(struct helper *h, const char *name, elf_service_make_fn make)
{
	const struct elf_worker_kind kind = {
		.name = name, .make = make, .memory_bytes = WORKER_MEMORY_BYTES, .nice = LEAST_NICE
	};
	static const struct elf_request nothing = { .op = ELF_OP_FORGET };
	enum failure failure;
	int error, status;

	for (int i = 0; i < TEMPLATES; i++) {
		h->templates[i].pid = elf_template_fork(&kind, &h->templates[i].control);
		if (h->templates[i].pid < 0)
			return h->templates[i].pid;
		if (set_slices(h->templates[i].control))
			return -errno;
	}
	error = start_worker(h);
	if (!error && ask(h, &nothing, -1, NULL, 0, &h->scratch, &status, &failure))
		error = -ECHILD;
	return error;
}

static int helper_new(const char *name, elf_service_make_fn make, const char *restarts, const char *help,
		      struct metrics *metrics, struct elf_service **ret)
{
	struct helper *h = calloc(1, sizeof(*h));
	int error;

	if (!h)
		return -ENOMEM;
	h->service.ops = &helper_ops;
	h->sock = -1;
	for (int i = 0; i < TEMPLATES; i++)
		h->templates[i].control = -1;
	for (int i = 0; i < FAILURES; i++)
		h->restarts[i] = metrics_counter(metrics, restarts, failures[i].labels, help);
	error = start(h, name, make);
	if (error)
		helper_free(&h->service);
	else
		*ret = &h->service;
	return error;
}

int elf_helper_new(elf_service_make_fn make, struct metrics *metrics, struct elf_service **ret)
{
	return helper_new("hearth-elf", make, "hearth_elf_helper_restarts_total",
			  "Worker processes that ended, by why; each is started again when needed.", metrics, ret);
}

int elf_helper_new_code(elf_service_make_fn make, struct metrics *metrics, struct elf_service **ret)
{
	return helper_new("hearth-code", make, "hearth_code_helper_restarts_total",
			  "Worker processes that read generated code and ended, by why.", metrics, ret);
}
