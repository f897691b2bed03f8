/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file: YAML whose keys are the long names of options. Options below a command's name are for that command
 * alone and override those outside; or a Collector's pipelines (cmd/pipeline/), which mean such settings, too. Main thread.
 *
 *   freq: 99
 *   collector: [ http://collector:4318 ]
 *   record:
 *     freq: 999
 */
#ifndef HEARTH_CMD_OPTIONS_CONFIG_FILE_H
#define HEARTH_CMD_OPTIONS_CONFIG_FILE_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct cmd;
struct config;
struct config_file;
struct option_spec;
struct pipelines;
struct tree;

/*
 * Reads @sources, each as --config takes it (cmd/pipeline/source.h), the later ones laid over the earlier ones, and then
 * @sets, KEY=VALUE; both NULL-terminated, and NULL where there are none. 0; -EINVAL with "PATH:LINE: what is wrong" in
 * @error (not YAML, not of this form, cannot be read); -EBADMSG: the same of pipelines; -ENOMEM.
 */
int config_file_read(const char *const *sources, const char *const *sets, struct config_file **ret, struct buf *error);

/* The same of @len bytes in memory, called @path in messages. */
int config_file_parse(const char *path, const void *data, size_t len, struct config_file **ret, struct buf *error);
void config_file_free(struct config_file *f);

/*
 * The file that is read when none is named: $XDG_CONFIG_HOME/hearth.yaml (~/.config) or /etc/hearth.yaml, whichever is there
 * and can be read, if nobody else may write to it. -ENOENT when there is none.
 */
int config_file_find(struct buf *path);

/* The first key that is no option and no command: -EINVAL with "PATH:LINE: ..." in @error; 0. */
int config_file_check_keys(const struct config_file *f, struct buf *error);

/* Sets @spec as the file says for @cmd. 1; 0: it says nothing; -EINVAL with "PATH:LINE: ..." in @error; -ENOMEM. The texts
 * live as long as @f. */
int config_file_set(const struct config_file *f, const struct cmd *cmd, const struct option_spec *spec,
		    struct config *config, struct buf *error);

/* Every problem there is, a line each, appended to @out; how many, or -ENOMEM. */
int config_file_check(const struct config_file *f, struct buf *out);

/* The pipelines of a file of the Collector's form; NULL: it is a flat one, or @f is NULL. */
const struct pipelines *config_file_pipelines(const struct config_file *f);

/* All of it, as it was read. */
const struct tree *config_file_tree(const struct config_file *f);

/* How many settings it has. */
size_t config_file_count(const struct config_file *f);

#endif
