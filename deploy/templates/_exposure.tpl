{{- /* "true" if TLS ends before the gateway, "" if at the gateway. Argument: root. */ -}}
{{- define "exposure.is-plain" -}}
{{- if has .Values.exposure.by (list "Ingress" "HTTPRoute") }}true{{ end -}}
{{- end -}}

{{- /* Caddy with another Caddyfile has another ConfigMap, so that pods are replaced. Argument: root. */ -}}
{{- define "exposure.caddyfile" -}}
gateway-{{ print (.Files.Get "Caddyfile") (.Files.Get "gateway.sh") | sha256sum | trunc 10 }}
{{- end -}}

{{- /* The gateway behind a controller that ends TLS: HTTP, and X-Forwarded-… of that controller. Argument: pod, root. */ -}}
{{- define "exposure.gateway" -}}
{{- $pod := .pod -}}
{{- range $pod.volumes }}{{ if eq .name "caddyfile" }}{{ $_ := set .configMap "name" (include "exposure.caddyfile" $.root) }}{{ end }}{{ end -}}
{{- if include "exposure.is-plain" .root -}}
{{- $container := first $pod.containers -}}
{{- $proxies := concat (list "trusted_proxies static private_ranges") .root.Values.exposure.from.networks | join " " -}}
{{- range $name, $value := dict "GATEWAY_ADDRESS" "http://:8080" "GATEWAY_TLS" "" "GATEWAY_PROXIES" $proxies -}}
{{- include "source.variable" (dict "container" $container "name" $name "value" $value) -}}
{{- end -}}
{{- $_ := set $container "ports" (list (dict "name" "http" "containerPort" 8080)) -}}
{{- range list $container.livenessProbe $container.readinessProbe -}}
{{- $_ := set .httpGet "port" "http" -}}
{{- $_ := unset .httpGet "scheme" -}}
{{- end -}}
{{- $_ := set $container "volumeMounts" (include "source.without" (dict "items" $container.volumeMounts "name" "tls") | fromJsonArray) -}}
{{- $_ := set $pod "volumes" (include "source.without" (dict "items" $pod.volumes "name" "tls") | fromJsonArray) -}}
{{- end -}}
{{- end -}}

{{- /* The Service of the gateway. Argument: object, root. */ -}}
{{- define "exposure.service" -}}
{{- $exposure := .root.Values.exposure -}}
{{- $spec := .object.spec -}}
{{- $type := eq $exposure.by "Service" | ternary $exposure.service.type "ClusterIP" -}}
{{- $_ := set $spec "type" $type -}}
{{- if eq $type "ClusterIP" }}{{ $_ := unset $spec "externalTrafficPolicy" }}{{ end -}}
{{- with $exposure.service.annotations }}{{ $_ := set $.object.metadata "annotations" . }}{{ end -}}
{{- if include "exposure.is-plain" .root -}}
{{- $_ := set $spec "ports" (list (dict "name" "http" "port" 80 "targetPort" "http")) -}}
{{- end -}}
{{- end -}}

{{- /* Both names, as a JSON list. Argument: root. */ -}}
{{- define "exposure.hosts" -}}
{{- list .Values.host (printf "*.%s" .Values.notebooksDomain) | toJson -}}
{{- end -}}
