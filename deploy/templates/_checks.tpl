{{- /* What the schema cannot say, in sentences, all at once. Argument: root. */ -}}
{{- define "checks" -}}
{{- $found := list -}}
{{- $exposure := .Values.exposure -}}
{{- if ne .Release.Namespace "gpu-portal" -}}
{{- $found = append $found (printf "The namespace has to be gpu-portal, not %s: fences, rights and network policies of teams name it. Use --namespace gpu-portal." .Release.Namespace) -}}
{{- end -}}
{{- if and (include "exposure.is-plain" .) (not $exposure.from.namespaces) (not $exposure.from.networks) -}}
{{- $found = append $found (printf "exposure.from.namespaces or exposure.from.networks is required with exposure.by=%s: the gateway believes the headers of who may connect to it." $exposure.by) -}}
{{- end -}}
{{- if and (has $exposure.by (list "TLSRoute" "HTTPRoute")) (not $exposure.route.parentRefs) -}}
{{- $found = append $found (printf "exposure.route.parentRefs is required with exposure.by=%s: it names the Gateway." $exposure.by) -}}
{{- end -}}
{{- if and .Values.issuer.url (not .Values.issuer.addresses) -}}
{{- $found = append $found "issuer.addresses is required with issuer.url: web reaches no other networks." -}}
{{- end -}}
{{- $settings := dict "settings" .Values.settings -}}
{{- range $process, $has := .Values.processes }}{{ $_ := set $settings (printf "processes.%s.settings" $process) ($has.settings | default dict) }}{{ end -}}
{{- range $path, $names := $settings -}}
{{- range $name, $_ := $names -}}
{{- if regexMatch "^(SECRET_KEY|DATABASE_URL|REDIS_URL|EMAIL_URL|NOTEBOOK_TOKEN_KEY|SECRETS_[A-Z_]*KEY|SECOND_FACTOR_KEY|OIDC_CLIENT_SECRET|[A-Z_]+_FALLBACKS)$" $name -}}
{{- $found = append $found (printf "%s.%s is a secret and does not belong in values: put it into a Secret (README.md), and the path of its file into %s_FILE." $path $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $found }}{{ fail (join "\n" $found) }}{{ end -}}
{{- end -}}
