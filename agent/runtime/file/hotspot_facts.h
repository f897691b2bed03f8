/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that libjvm tells of itself (struct code_facts): where the tables stand that describe its structures, and how
 * their entries are laid out (src/hotspot/share/runtime/vmStructs.hpp). No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_HOTSPOT_FACTS_H
#define HEARTH_AGENT_RUNTIME_FILE_HOTSPOT_FACTS_H

/* X(name, exported variable). All have 8 bytes, which only the running program fills. */
#define HOTSPOT_FACTS(X)                                               \
	X(STRUCTS, "gHotSpotVMStructs")                                \
	X(STRUCT_TYPE, "gHotSpotVMStructEntryTypeNameOffset")          \
	X(STRUCT_FIELD, "gHotSpotVMStructEntryFieldNameOffset")        \
	X(STRUCT_TYPE_STRING, "gHotSpotVMStructEntryTypeStringOffset") \
	X(STRUCT_IS_STATIC, "gHotSpotVMStructEntryIsStaticOffset")     \
	X(STRUCT_OFFSET, "gHotSpotVMStructEntryOffsetOffset")          \
	X(STRUCT_ADDRESS, "gHotSpotVMStructEntryAddressOffset")        \
	X(STRUCT_STRIDE, "gHotSpotVMStructEntryArrayStride")           \
	X(TYPES, "gHotSpotVMTypes")                                    \
	X(TYPE_NAME, "gHotSpotVMTypeEntryTypeNameOffset")              \
	X(TYPE_SIZE, "gHotSpotVMTypeEntrySizeOffset")                  \
	X(TYPE_STRIDE, "gHotSpotVMTypeEntryArrayStride")

#define X(name, variable) HOTSPOT_FACT_##name,
enum hotspot_fact { HOTSPOT_FACTS(X) HOTSPOT_FACT_MAX };
#undef X

#endif
