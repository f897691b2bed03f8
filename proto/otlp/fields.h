/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec's own: field numbers of the generated schema by short names, and how bytes are read (proto/wire.h).
 */
#ifndef HEARTH_PROTO_OTLP_FIELDS_H
#define HEARTH_PROTO_OTLP_FIELDS_H

#include "proto/opentelemetry/common.pb.h"
#include "proto/opentelemetry/profiles.pb.h"
#include "proto/opentelemetry/profiles_service.pb.h"
#include "proto/opentelemetry/resource.pb.h"
#include "proto/opentelemetry/status.pb.h"
#include "proto/wire.h"

#define COMMON_TAG(message, field)   opentelemetry_proto_common_v1_##message##_##field##_tag
#define RESOURCE_TAG(message, field) opentelemetry_proto_resource_v1_##message##_##field##_tag
#define PROFILES_TAG(message, field) opentelemetry_proto_profiles_v1development_##message##_##field##_tag
#define SERVICE_TAG(message, field)  opentelemetry_proto_collector_profiles_v1development_##message##_##field##_tag
#define STATUS_TAG(message, field)   google_rpc_##message##_##field##_tag

#endif
