# SPDX-License-Identifier: Apache-2.0
{{- define "hearth.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hearth.account" -}}
{{- .Values.serviceAccount.name | default (include "hearth.name" .) }}
{{- end }}

{{- define "hearth.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{- define "hearth.labels" -}}
app.kubernetes.io/name: hearth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "hearth.selector" -}}
app.kubernetes.io/name: hearth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
