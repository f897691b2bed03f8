/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/sums/idle_waits.h"

/* docs/waiting.md has the same list. */
static const char pattern[] =
	"^(?:"
	/* the kernel: epoll, new connections, signals, children, io_uring */
	"ep_poll|do_epoll_wait|inet_csk_accept|unix_accept|do_sigtimedwait|sigsuspend|__[a-z0-9]+_sys_pause|do_wait"
	"|io_cqring_wait"
	/* Go: threads without a goroutine */
	"|runtime\\.(?:stopm|mPark|sysmon|templateThread|netpoll)"
	/* Java: pools, and the virtual machine's own threads */
	"|(?:java\\.util\\.concurrent\\.)?(?:ThreadPoolExecutor\\.getTask|ForkJoinPool\\.awaitWork)"
	"|(?:java\\.lang\\.ref\\.)?Reference\\.waitForReferencePendingList"
	"|WorkerThread::run|VMThread::(?:wait_for_vm_operation|loop)|WatcherThread::(?:run|sleep)|CompileQueue::get"
	"|ServiceThread::service_thread_entry|os::signal_wait"
	/* libuv, tokio, rayon, glib, OpenMP, Erlang */
	"|uv__io_poll|tokio::runtime::.*::park(?:_timeout)?|rayon_core::sleep::Sleep::sleep|g_main_context_poll"
	"|g_thread_pool_wait_for_new_task|gomp_thread_start|scheduler_wait"
	/* servers: Apache, php-fpm, PostgreSQL, MySQL */
	"|ap_queue_pop_something|fcgi_accept_request|ServerLoop|Per_thread_connection_handler::block_until_new_connection"
	/* Python's pools */
	"|_worker)$";

const char *idle_waits_pattern(void)
{
	return pattern;
}

bool idle_waits_are_in(struct str type)
{
	return str_is(type, "off_cpu") || str_is(type, "waker");
}
