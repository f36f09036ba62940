// A repository of the registry, or an image of it: the address is its name as clients write it.

import { useParams } from "react-router-dom-v5-compat";
import { Image } from "../registry/image";
import { parseImage } from "../registry/image_name";
import { Repository } from "../registry/repository";
import { NotFound } from "./not_found";

export default function RegistryImage() {
  const { "*": text = "" } = useParams();
  const image = parseImage(text);
  if (!image) return <NotFound />;
  const { repository, reference } = image;
  return reference === undefined ? <Repository key={repository} name={repository} /> : <Image key={text} name={repository} reference={reference} />;
}
