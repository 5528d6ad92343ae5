{{- /* The ConfigMap of settings. Argument: object, root. */ -}}
{{- define "settings.change" -}}
{{- $values := .root.Values -}}
{{- $data := .object.data -}}
{{- $_ := set $data "PORTAL_URL" (printf "https://%s" $values.host) -}}
{{- $_ := set $data "PORTAL_HOST" $values.host -}}
{{- $_ := set $data "ALLOWED_HOSTS" $values.host -}}
{{- $_ := set $data "NOTEBOOKS_DOMAIN" $values.notebooksDomain -}}
{{- $_ := set $data "CLUSTER_NAME" $values.cluster -}}
{{- $_ := mergeOverwrite $data $values.settings -}}
{{- end -}}

{{- /* Changes with every setting, so that pods are replaced when one does: they read them at their start. */ -}}
{{- define "settings.mark" -}}
{{- $values := .Values -}}
{{- list $values.host $values.notebooksDomain $values.cluster $values.settings (.Files.Get "portal/settings.yaml") | toJson | sha256sum -}}
{{- end -}}

{{- /* The site profile: the preset, then own keys. A list has one entry in each line. Argument: object, root. */ -}}
{{- define "settings.site" -}}
{{- $site := .root.Values.site -}}
{{- if $site.preset -}}
{{- $file := include "source.file" (dict "root" .root "path" (printf "sites/%s/site.yaml" $site.preset)) | fromYaml -}}
{{- $_ := mergeOverwrite .object.data $file.data -}}
{{- end -}}
{{- range $key, $value := $site.profile -}}
{{- $_ := set $.object.data $key (kindIs "slice" $value | ternary (join "\n" $value) (toString $value)) -}}
{{- end -}}
{{- end -}}
