/* SPDX-License-Identifier: Apache-2.0 */
/* The fact that a file with .NET's runtime (CoreCLR) tells: libcoreclr.so, or a program with all of it in one file. No
 * state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_DOTNET_FACTS_H
#define HEARTH_AGENT_RUNTIME_FILE_DOTNET_FACTS_H

/* The variable g_dacTable: addresses of the runtime's variables, for debuggers. */
enum dotnet_fact { DOTNET_FACT_VARIABLES, DOTNET_FACT_MAX };

#endif
