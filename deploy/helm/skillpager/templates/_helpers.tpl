{{- define "skillpager.name" -}}
{{- if contains "skillpager" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-skillpager" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "skillpager.selector" -}}
app.kubernetes.io/name: skillpager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "skillpager.labels" -}}
{{ include "skillpager.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
