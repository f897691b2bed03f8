/* SPDX-License-Identifier: Apache-2.0 */
/* Hides passwords on the command line, which everybody on the machine may read. */
#ifndef HEARTH_CMD_OPTIONS_HIDE_H
#define HEARTH_CMD_OPTIONS_HIDE_H

/* Puts x's where @text, a URL or something with one in it, has a password: "SCHEME://USER:PASSWORD@". */
void hide_password(char *text);

/*
 * The same for the words of @argv, up to "--": behind it stands another program's command. A word with a password is
 * replaced by a copy that keeps it and is never freed.
 */
void hide_passwords(int argc, char **argv);

#endif
