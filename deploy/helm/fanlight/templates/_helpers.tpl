{{- define "fanlight.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "fanlight.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fanlight.labels" -}}
{{ include "fanlight.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The settings file: what the values say, and what names the files beside it. */}}
{{- define "fanlight.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- if .Values.auth.usersSecret }}{{ $_ := set $settings "users_file" "/etc/fanlight-users/users.toml" }}{{ end }}
{{- if .Values.auth.tokenKeysSecret }}{{ $_ := set $settings "token_keys_file" "/etc/fanlight-keys/keys.json" }}{{ end }}
{{- if .Values.tlsSecret }}
{{- $_ := set $settings "tls_certificate" "/etc/fanlight-tls/tls.crt" }}
{{- $_ := set $settings "tls_key" "/etc/fanlight-tls/tls.key" }}
{{- end }}
{{- if .Values.metrics.open }}{{ $_ := set $settings "metrics_open" true }}{{ end }}
{{- if .Values.metrics.tokenSecret }}{{ $_ := set $settings "metrics_token_file" "/etc/fanlight-metrics/token" }}{{ end }}
{{- range $name := list "permissions" "quotas" "rules" }}
{{- if hasKey $.Values.files (printf "%s.toml" $name) }}{{ $_ := set $settings $name (printf "/etc/fanlight/%s.toml" $name) }}{{ end }}
{{- end }}
{{- range $name, $value := $settings }}
{{- if kindIs "string" $value }}
{{ $name }} = {{ $value | quote }}
{{- else if and (kindIs "float64" $value) (eq $value (floor $value)) }}{{/* Helm reads 20 as 20.0 */}}
{{ $name }} = {{ $value | int64 }}
{{- else }}
{{ $name }} = {{ $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fanlight.ports" -}}
{{- $names := dict "native" "native" "mqtt" "mqtt" "amqp" "amqp" "mqttWebsocket" "mqtt-ws" "http" "http" }}
{{- range $key, $name := $names }}
{{- with index $.Values.ports $key }}
- {name: {{ $name }}, port: {{ . }}, targetPort: {{ $name }}, protocol: TCP}
{{- end }}
{{- end }}
{{- if .Values.tlsSecret }}
- {name: native-tls, port: 7423, targetPort: native-tls, protocol: TCP}
- {name: mqtt-tls, port: 8883, targetPort: mqtt-tls, protocol: TCP}
- {name: amqp-tls, port: 5671, targetPort: amqp-tls, protocol: TCP}
- {name: mqtt-wss, port: 8084, targetPort: mqtt-wss, protocol: TCP}
{{- end }}
{{- end }}
