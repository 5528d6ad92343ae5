{{- /* Deployments and the Job: image, replicas, resources, variables, placement, Secrets. Argument: object, root. */ -}}
{{- define "pods.change" -}}
{{- $values := .root.Values -}}
{{- $name := .object.metadata.name -}}
{{- $pod := .object.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $image := eq $name "gateway" | ternary $values.images.gateway $values.images.portal -}}
{{- with $image }}{{ $_ := set $container "image" . }}{{ end -}}
{{- if $values.images.pullSecrets -}}
{{- $secrets := list -}}
{{- range $values.images.pullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- $_ := set $pod "imagePullSecrets" $secrets -}}
{{- end -}}
{{- with get $values.processes $name -}}
{{- if hasKey . "replicas" }}{{ $_ := set $.object.spec "replicas" .replicas }}{{ end -}}
{{- $_ := mergeOverwrite $container.resources (.resources | default dict) -}}
{{- end -}}
{{- with $values.placement.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- with $values.placement.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end -}}
{{- if and (eq $name "web") $values.issuer.url }}{{ include "pods.issuer" (dict "pod" $pod "root" .root) }}{{ end -}}
{{- if eq $name "gateway" }}{{ include "exposure.gateway" (dict "pod" $pod "root" .root) }}{{ end -}}
{{- range $variable, $value := dig $name "settings" dict $values.processes -}}
{{- include "source.variable" (dict "container" $container "name" $variable "value" $value) -}}
{{- end -}}
{{- include "pods.secrets" (dict "pod" $pod "root" .root) -}}
{{- if eq .object.kind "Deployment" -}}
{{- $_ := set .object.spec.template.metadata "annotations" (dict "gpu-portal/settings" (include "settings.mark" .root)) -}}
{{- else -}}
{{- /* A Job cannot be changed, so that each revision has its own. The mark is for tools that render every revision as the first. */ -}}
{{- $mark := .object.spec | toJson | sha256sum | trunc 8 -}}
{{- $_ := set .object.metadata "name" (printf "%s-%d-%s" $name .root.Release.Revision $mark) -}}
{{- end -}}
{{- end -}}

{{- /* Web with single sign-on: what issuer/web.yaml adds, with the values. Argument: pod, root. */ -}}
{{- define "pods.issuer" -}}
{{- $issuer := .root.Values.issuer -}}
{{- $web := first .pod.containers -}}
{{- $patch := (include "source.file" (dict "root" .root "path" "issuer/web.yaml") | fromYaml).spec.template.spec -}}
{{- $added := first $patch.containers -}}
{{- $_ := set $web "env" (concat $web.env $added.env) -}}
{{- $_ := set $web "volumeMounts" (concat $web.volumeMounts $added.volumeMounts) -}}
{{- $_ := set .pod "volumes" (concat .pod.volumes $patch.volumes) -}}
{{- $known := dict "OIDC_ISSUER" $issuer.url "OIDC_CLIENT_ID" $issuer.clientId "OIDC_NAME" $issuer.name -}}
{{- range $name, $value := $known -}}
{{- include "source.variable" (dict "container" $web "name" $name "value" $value) -}}
{{- end -}}
{{- end -}}

{{- /*
Volumes of Secrets, by the names and keys of this site. A Secret with another key is mounted with that key alone.
Argument: pod, root.
*/ -}}
{{- define "pods.secrets" -}}
{{- $values := .root.Values -}}
{{- $others := mergeOverwrite (dict "gateway-tls" (dict "name" $values.tls.secret) "issuer" (dict "name" $values.issuer.secret)) $values.secrets -}}
{{- range $volume := .pod.volumes -}}
{{- if $volume.secret -}}
{{- with get $others $volume.secret.secretName }}{{ $_ := set $volume.secret "secretName" .name }}{{ end -}}
{{- else if $volume.projected -}}
{{- $sources := list -}}
{{- range $volume.projected.sources -}}
{{- $secret := .secret -}}
{{- $usual := $secret.name -}}
{{- with get $others $usual -}}
{{- $_ := set $secret "name" (.name | default $usual) -}}
{{- with .key -}}
{{- $path := hasKey $secret "items" | ternary (first ($secret.items | default (list dict))).path (include "pods.usual-key" $usual) -}}
{{- $_ := set $secret "items" (list (dict "key" . "path" $path)) -}}
{{- end -}}
{{- end -}}
{{- $sources = append $sources . -}}
{{- if and (eq $usual "portal") $others.redis -}}
{{- $kept := list -}}
{{- range $secret.items }}{{ if ne .key "redis-url" }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- $_ := set $secret "items" $kept -}}
{{- $redis := dict "name" $others.redis.name "items" (list (dict "key" ($others.redis.key | default "redis-url") "path" "redis-url")) -}}
{{- $sources = append $sources (dict "secret" $redis) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $volume.projected "sources" $sources -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The one key of a Secret of README.md that a process mounts as a whole. */ -}}
{{- define "pods.usual-key" -}}
{{- if hasPrefix "database-" . }}database-url
{{- else }}{{ get (dict "sign-in" "second-factor-key" "notebooks" "notebook-token-key" "team-secrets" "secrets-private-key" "mail" "mail-url" "prometheus" "prometheus-token") . }}
{{- end -}}
{{- end -}}
