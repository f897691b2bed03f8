/* SPDX-License-Identifier: Apache-2.0 */
/* One timer: it ends the delay first, then an interval each time. */
#include "cmd/setup/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text/parse.h"
#include "cmd/options/config.h"

int schedule_parse(const char *text, double *percent_ret, uint64_t *interval_ns_ret)
{
	char *end;
	double percent = strtod(text, &end);
	uint64_t interval_ns = 0;

	if (end == text || !isfinite(percent) || percent < 0 || percent > 100)
		return -EINVAL;
	end += *end == '%';
	if (*end == '/' && (parse_duration(end + 1, &interval_ns) || interval_ns < NSEC_PER_MSEC))
		return -EINVAL;
	if (*end && *end != '/')
		return -EINVAL;
	*percent_ret = percent;
	*interval_ns_ret = interval_ns;
	return 0;
}

int schedule_init(struct schedule *s, const struct config *config, struct buf *error)
{
	*s = (struct schedule){ .delay_ns = config->delay_ns, .percent = 100 };
	if (config->probabilistic && schedule_parse(config->probabilistic, &s->percent, &s->interval_ns)) {
		buf_printf(error,
			   "--probabilistic: '%s' is not a percentage, with a time behind it perhaps; give one such as 10 "
			   "or 10/1m",
			   config->probabilistic);
		return -EINVAL;
	}
	if (getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK) != sizeof(s->random))
		s->random = (unsigned)clock_mono_ns();
	return 0;
}

bool schedule_is_on(const struct schedule *s)
{
	return s->delay_ns || s->percent < 100;
}

static void draw(struct schedule *s)
{
	bool is_chosen = (double)rand_r(&s->random) < s->percent / 100 * ((double)RAND_MAX + 1);
	int err = agent_pause(s->agent, !is_chosen);

	s->has_begun = true;
	if (err)
		log_error("cannot %s sampling: %s", is_chosen ? "begin" : "stop", strerror(-err));
	else if (s->percent < 100 && !s->interval_ns)
		log_info("--probabilistic: this host is %s", is_chosen ? "sampled" : "left out");
	else if (s->percent < 100)
		log_debug("--probabilistic: this interval is %s", is_chosen ? "sampled" : "left out");
}

static void on_timer(void *arg)
{
	draw(arg);
}

int schedule_start(struct schedule *s, struct loop *loop, struct agent *agent)
{
	int err;

	s->agent = agent;
	if (!schedule_is_on(s))
		return 0;
	if (!s->delay_ns)
		draw(s);
	if (!s->delay_ns && !s->interval_ns)
		return 0;
	err = loop_add_timer(loop, on_timer, s, &s->timer);
	return err ? err : loop_set_timer(s->timer, s->delay_ns ? s->delay_ns : s->interval_ns, s->interval_ns);
}

int schedule_change(struct schedule *s, const struct schedule *to, struct loop *loop)
{
	bool is_waiting = s->delay_ns && s->timer && !s->has_begun;
	int err = 0;

	s->percent = to->percent;
	s->interval_ns = to->interval_ns;
	if (is_waiting)
		return 0; /* the delay's end will draw */
	if (!s->timer && s->interval_ns)
		err = loop_add_timer(loop, on_timer, s, &s->timer);
	if (!err && s->timer)
		err = loop_set_timer(s->timer, s->interval_ns, s->interval_ns);
	if (!err)
		draw(s);
	return err;
}
