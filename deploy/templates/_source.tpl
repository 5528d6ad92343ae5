{{- /*
The objects of the files that FOLDER/kustomization.yaml lists, in its order, as a JSON list. Helm's templates only change these
objects: what has no value is written once, in the files that kustomize reads too.
Argument: root, folder.
*/ -}}
{{- define "source.objects" -}}
{{- $objects := list -}}
{{- range (include "source.file" (dict "root" .root "path" (printf "%s/kustomization.yaml" .folder)) | fromYaml).resources -}}
{{- $text := include "source.file" (dict "root" $.root "path" (printf "%s/%s" $.folder .)) -}}
{{- range splitList "\n---\n" $text -}}
{{- $object := fromYaml . -}}
{{- if not (hasKey $object "kind") }}{{ fail (printf "A file of %s/ has a document that is no object: %v" $.folder $object) }}{{ end -}}
{{- $objects = append $objects $object -}}
{{- end -}}
{{- end -}}
{{- $objects | toJson -}}
{{- end -}}

{{- define "source.file" -}}
{{- if not (.root.Files.Get .path) }}{{ fail (printf "The chart has no file %s." .path) }}{{ end -}}
{{- .root.Files.Get .path -}}
{{- end -}}

{{- /* Sets a variable of a container. Argument: container, name, value. */ -}}
{{- define "source.variable" -}}
{{- $kept := list -}}
{{- range .container.env }}{{ if ne .name $.name }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- $_ := set .container "env" (append $kept (dict "name" .name "value" .value)) -}}
{{- end -}}

{{- /* The items of a list that do not have the name. Argument: items, name. As a JSON list. */ -}}
{{- define "source.without" -}}
{{- $kept := list -}}
{{- range .items }}{{ if ne .name $.name }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- $kept | toJson -}}
{{- end -}}
