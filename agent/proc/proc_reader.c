/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side: one question at a time, and one more while the hook of that runs. A worker that was given up may still
 * answer one day; nobody has the other end of its socket then. Silent processes take 5 % of the agent's time at most while
 * their number is bounded: when that is used up, nobody is waited for longer than an honest worker takes.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_worker.h"
#include "base/allowance.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"

enum {
	SLICE_MS = 10,
	LIMIT_MS = 250,	  /* until the first packet, and between two: a busy machine lets even a hurried worker wait */
	AT_ONCE_MS = 100, /* of who cannot have the hook run: the rings fill meanwhile */
	SPENT_MS = 20,	  /* when silent processes have taken their part of the time */
	WHOLE_MS = 1000,  /* for the whole answer */
	FIRST_REST_SECONDS = 1,
	LAST_REST_SECONDS = 600,
	MAX_RESTING = 4096,
	MAX_TOLD = 32, /* messages; more only while silent processes are few */
};

/* A process that did not answer. */
struct rest {
	uint64_t until_ns;
	uint32_t seconds;
};

static struct {
	pid_t keeper; /* 0: not started */
	int control;  /* -1: the keeper has gone */
	int lanes[PROC_LANES];
	unsigned depth; /* questions that are under way */
	unsigned told;	/* messages about silent processes */
	struct wait_hook on_wait;
	struct allowance waiting;
	struct map resting; /* pid -> struct rest *, owned */
	struct metric *silent, *left_out;
} reader = { .control = -1 };

/* --- workers --- */

/* Ends the worker of @lane, if there is one, and has another made. 0, or -ECHILD: the keeper has gone. */
static int renew(unsigned lane)
{
	const struct proc_order order = { lane };
	int pair[2], error;

	if (reader.lanes[lane] >= 0)
		close(MOVE_FD(reader.lanes[lane]));
	if (reader.control < 0)
		return -ECHILD;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	error = proc_wire_send(reader.control, &order, sizeof(order), NULL, 0, pair[1]);
	close(pair[1]);
	if (!error) {
		reader.lanes[lane] = pair[0];
		return 0;
	}
	close(pair[0]);
	close(MOVE_FD(reader.control));
	log_error("the process that looks into others (hearth-proc) has gone: stacks of sleeping threads, environments and "
		  "mappings are not read any more until hearth is started again");
	return -ECHILD;
}

int proc_reader_start(struct metrics *metrics)
{
	pid_t pid;

	if (reader.keeper)
		return -EBUSY;
	pid = proc_keeper_fork(&reader.control);
	if (pid < 0)
		return (int)pid;
	reader.keeper = pid;
	for (int i = 0; i < PROC_LANES; i++)
		reader.lanes[i] = -1;
	reader.silent = metrics_counter(metrics, "hearth_processes_silent_total", NULL,
					"Times that a process let nobody look into its memory.");
	reader.left_out = metrics_counter(
		metrics, "hearth_process_reads_left_out_total", NULL,
		"Looks into the memory of processes that were left out, as the process had let nobody look before.");
	return renew(0);
}

static void *drop(void *arg, void *value)
{
	(void)arg;
	free(value);
	return NULL;
}

void proc_reader_stop(void)
{
	if (!reader.keeper)
		return;
	if (reader.control >= 0)
		close(MOVE_FD(reader.control)); /* it ends with it, and its workers with it */
	for (int i = 0; i < PROC_LANES; i++)
		if (reader.lanes[i] >= 0)
			close(MOVE_FD(reader.lanes[i]));
	while (waitpid(reader.keeper, NULL, 0) < 0 && errno == EINTR)
		;
	map_sweep(&reader.resting, drop, NULL);
	map_fini(&reader.resting);
	reader.keeper = 0;
	reader.depth = reader.told = 0;
	reader.on_wait = (struct wait_hook){ 0 };
	reader.waiting = (struct allowance){ 0 };
	reader.silent = reader.left_out = NULL;
}

void proc_reader_on_wait(struct wait_hook hook)
{
	reader.on_wait = hook;
}

/* --- processes that do not answer --- */

static bool rests(uint32_t pid)
{
	const struct rest *rest = map_get(&reader.resting, pid);

	return rest && clock_mono_ns() < rest->until_ns;
}

/* Another process may have the pid of one that rested long ago. */
static void *keep_late(void *arg, void *value)
{
	const uint64_t *now_ns = arg;
	struct rest *rest = value;

	if (*now_ns < rest->until_ns + LAST_REST_SECONDS * NSEC_PER_SEC)
		return value;
	free(rest);
	return NULL;
}

static void let_rest(uint32_t pid, bool tells)
{
	struct rest *rest = map_get(&reader.resting, pid);
	uint64_t now_ns = clock_mono_ns();

	metric_add(reader.silent, 1);
	if (!rest) {
		if (reader.resting.count >= MAX_RESTING)
			map_sweep(&reader.resting, keep_late, &now_ns);
		rest = reader.resting.count < MAX_RESTING ? calloc(1, sizeof(*rest)) : NULL;
		if (!rest)
			return;
		if (map_put(&reader.resting, pid, rest)) {
			free(rest);
			return;
		}
	}
	rest->seconds = rest->seconds ? 2 * rest->seconds : FIRST_REST_SECONDS;
	if (rest->seconds > LAST_REST_SECONDS)
		rest->seconds = LAST_REST_SECONDS;
	rest->until_ns = now_ns + rest->seconds * NSEC_PER_SEC;
	if (tells || reader.told++ < MAX_TOLD)
		log_warn("process %u lets nobody look into its memory: a file system or a device that it uses does not "
			 "answer; it is looked at again in %u s",
			 pid, rest->seconds);
}

/* It answered: should it fall silent again, its rests begin anew. */
static void let_live(uint32_t pid)
{
	if (reader.resting.count)
		free(map_del(&reader.resting, pid));
}

/* --- questions --- */

/* Waits for a packet of @lane. 0, or -ETIMEDOUT. */
static int wait_for(unsigned lane, uint64_t end_ns, bool has_hook)
{
	struct pollfd ready = { .fd = reader.lanes[lane], .events = POLLIN };

	for (;;) {
		uint64_t now_ns = clock_mono_ns(), left_ms = now_ns < end_ns ? (end_ns - now_ns) / NSEC_PER_MSEC + 1 : 0;
		int n = poll(&ready, 1, (int)(left_ms < SLICE_MS ? left_ms : SLICE_MS));

		if (n > 0)
			return 0;
		if (!left_ms)
			return -ETIMEDOUT;
		if (has_hook)
			wait_hook_run(&reader.on_wait);
	}
}

/* Takes the answer off @lane. 0; -ETIMEDOUT; -EPIPE: the worker has gone; -EPROTO: it said what none says. */
static int collect(unsigned lane, uint64_t limit_ns, bool has_hook, struct proc_reply *reply, struct buf *ret, int *fd_ret)
{
	uint64_t began_ns = clock_mono_ns(), end_ns = began_ns + limit_ns;
	size_t whole = SIZE_MAX;

	*reply = (struct proc_reply){ .status = 1 };
	buf_reset(ret);
	while (ret->len < whole) {
		const bool is_first = whole == SIZE_MAX;
		int error = buf_reserve(ret, PROC_PACKET_BYTES) ? -ENOMEM : wait_for(lane, end_ns, has_hook), fd;
		ssize_t len;

		if (error)
			return error;
		len = proc_wire_receive(reader.lanes[lane], reply, is_first ? sizeof(*reply) : 0, ret->data + ret->len,
					PROC_PACKET_BYTES, MSG_DONTWAIT, &fd);
		if (fd >= 0 && *fd_ret < 0)
			*fd_ret = fd;
		else if (fd >= 0)
			close(fd);
		if (len <= 0)
			return len == -EAGAIN ? -ETIMEDOUT : -EPIPE;
		if (is_first && (len < (ssize_t)sizeof(*reply) || reply->bytes > PROC_MOST_BYTES ||
				 reply->then_bytes >= PROC_SYSCALL_BYTES || reply->status > 0))
			return -EPROTO;
		if (is_first)
			whole = (size_t)reply->bytes + reply->then_bytes;
		ret->len += (size_t)len - (is_first ? sizeof(*reply) : 0);
		end_ns = clock_mono_ns() + limit_ns;
		if (end_ns > began_ns + WHOLE_MS * NSEC_PER_MSEC)
			end_ns = began_ns + WHOLE_MS * NSEC_PER_MSEC;
	}
	return ret->len == whole ? 0 : -EPROTO;
}

static int ask_worker(uint32_t pid, const struct proc_request *r, bool has_hook, struct proc_reply *reply, struct buf *ret,
		      int *fd_ret)
{
	const uint64_t began_ns = clock_mono_ns();
	const bool is_rich = allowance_is_left(&reader.waiting, began_ns);
	const uint64_t limit_ms = !is_rich ? SPENT_MS : has_hook ? LIMIT_MS : AT_ONCE_MS;
	const unsigned lane = reader.depth;
	int error = -EPIPE;

	if (lane >= PROC_LANES)
		return -EBUSY;
	for (int tries = 0; error == -EPIPE && tries < 2; tries++) { /* somebody may have killed the worker */
		error = reader.lanes[lane] < 0 || tries ? renew(lane) : 0;
		if (!error)
			error = proc_wire_send(reader.lanes[lane], r, sizeof(*r), NULL, 0, -1);
		if (error == -ECONNRESET)
			error = -EPIPE;
		if (error)
			continue;
		reader.depth++;
		error = collect(lane, limit_ms * NSEC_PER_MSEC, has_hook && !lane, reply, ret, fd_ret);
		reader.depth--;
	}
	if (!error)
		return 0;
	if (*fd_ret >= 0)
		close(MOVE_FD(*fd_ret));
	if (error != -ECHILD)
		(void)renew(lane);
	if (error != -ETIMEDOUT)
		return error == -EPIPE ? -ECHILD : error;
	allowance_spend(&reader.waiting, began_ns, clock_mono_ns());
	let_rest(pid, is_rich);
	return -EBUSY;
}

/* Asks @r about process @pid. The status of the reply, or -errno. *@fd_ret: a descriptor, or -1. */
static int ask(uint32_t pid, const struct proc_request *r, bool has_hook, struct proc_reply *reply, struct buf *ret,
	       int *fd_ret)
{
	int error;

	*fd_ret = -1;
	if (!reader.keeper) {
		*fd_ret = proc_worker_do(r, reply, ret);
		return reply->status;
	}
	if (rests(pid)) {
		metric_add(reader.left_out, 1);
		return -EBUSY;
	}
	error = ask_worker(pid, r, has_hook, reply, ret, fd_ret);
	if (!error)
		let_live(pid);
	return error ? error : reply->status;
}

static int read_file(uint32_t pid, uint32_t task, const char *name, uint64_t offset, size_t bytes, bool has_hook,
		     struct buf *ret)
{
	struct proc_request r = { .op = PROC_OP_READ, .offset = offset };
	struct proc_reply reply;
	int unasked_fd, error;

	r.bytes = (uint32_t)(bytes < PROC_MOST_BYTES ? bytes : PROC_MOST_BYTES);
	(void)proc_path(r.path, task, name);
	error = ask(pid, &r, has_hook, &reply, ret, &unasked_fd);
	if (unasked_fd >= 0)
		close(unasked_fd);
	return error;
}

int proc_read(uint32_t pid, uint32_t task, const char *name, uint64_t offset, size_t bytes, struct buf *ret)
{
	return read_file(pid, task, name, offset, bytes, true, ret);
}

int proc_read_at_once(uint32_t pid, uint32_t task, const char *name, uint64_t offset, size_t bytes, struct buf *ret)
{
	return read_file(pid, task, name, offset, bytes, false, ret);
}

/* Puts @text into @ret. The length, or @error. */
static ssize_t put_text(int error, const struct buf *text, char *ret, size_t size)
{
	size_t len = !error && text->len < size ? text->len : 0;

	if (len)
		memcpy(ret, text->data, len);
	ret[len] = '\0';
	return error ? error : (ssize_t)len;
}

int proc_read_stack(uint32_t pid, uint32_t task, uint64_t addr, size_t bytes, struct buf *ret,
		    char syscall[static PROC_SYSCALL_BYTES])
{
	struct proc_request r = { .op = PROC_OP_READ, .offset = addr };
	struct proc_reply reply = { 0 };
	int unasked_fd, error;

	syscall[0] = '\0';
	r.bytes = (uint32_t)(bytes < PROC_MOST_BYTES ? bytes : PROC_MOST_BYTES);
	(void)proc_path(r.path, task, "mem");
	(void)proc_path(r.then, task, "syscall");
	error = ask(pid, &r, true, &reply, ret, &unasked_fd);
	if (unasked_fd >= 0)
		close(unasked_fd);
	if (error == -EBUSY || error == -ECHILD)
		return error;
	if (ret->len == (size_t)reply.bytes + reply.then_bytes) {
		memcpy(syscall, ret->data + reply.bytes, reply.then_bytes);
		syscall[reply.then_bytes] = '\0';
		ret->len = reply.bytes;
	}
	return error;
}

ssize_t proc_read_link(uint32_t pid, uint32_t task, const char *name, bool at_once, char *ret, size_t size)
{
	struct proc_request r = { .op = PROC_OP_LINK };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct proc_reply reply;
	int unasked_fd, error;

	r.bytes = (uint32_t)(size <= PATH_MAX ? size - 1 : PATH_MAX);
	(void)proc_path(r.path, task, name);
	error = ask(pid, &r, !at_once, &reply, &text, &unasked_fd);
	if (unasked_fd >= 0)
		close(unasked_fd);
	return put_text(error, &text, ret, size);
}

ssize_t proc_read_text(uint32_t pid, uint32_t task, const char *name, char *ret, size_t size)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int error = proc_read(pid, task, name, 0, size - 1, &text);

	return put_text(error, &text, ret, size);
}

static int open_as(uint32_t pid, uint32_t task, const char *name, enum proc_op op)
{
	struct proc_request r = { .op = op };
	AUTO(buf_fini) struct buf nothing = BUF_EMPTY;
	struct proc_reply reply;
	int fd, error;

	(void)proc_path(r.path, task, name);
	error = ask(pid, &r, true, &reply, &nothing, &fd);
	if (!error && fd < 0)
		return -EBADF;
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

int proc_open(uint32_t pid, uint32_t task, const char *name)
{
	return open_as(pid, task, name, PROC_OP_OPEN);
}

int proc_open_folder(uint32_t pid, const char *name)
{
	return open_as(pid, pid, name, PROC_OP_FOLDER);
}
