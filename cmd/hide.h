/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords on the command line, which everybody on the machine may read. */
#ifndef HEARTH_CMD_HIDE_H
#define HEARTH_CMD_HIDE_H

/* Puts x's where @text, a URL or something with one in it, has a password: "SCHEME://USER:PASSWORD@". */
void hide_password(char *text);

/*
 * The same for the words of @argv, up to "--": behind it stands another program's command. The place of a word that had one
 * is taken by a copy that has it still and lives until the end.
 */
void hide_passwords(int argc, char **argv);

#endif
