/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ${...} in the values of a pipeline file: ${env:NAME} and ${NAME}, the variable's value, empty where there is none;
 * ${env:NAME:-DEFAULT}; ${file:PATH}, ${yaml:TEXT} and ${http://...}, what these hold; $$ is a dollar. A value that is
 * nothing but one of them, without quotes, is read as YAML, so that numbers and lists may come from there. A dollar before
 * anything else stays. Main thread.
 */
#ifndef HEARTH_CMD_PIPELINE_EXPAND_H
#define HEARTH_CMD_PIPELINE_EXPAND_H

struct buf;
struct tree;

/* Replaces them all below @t. 0; -EINVAL with "SOURCE:LINE: ..." in @error; -ENOMEM. */
int expand_tree(struct tree *t, struct buf *error);

#endif
